"""Requests to the REST front of a cluster's API server: JSON in and out, without gRPC."""

from __future__ import annotations

import json
import ssl
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2

from nominee.localcluster.cluster import ClusterError
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import codec
from nominee.machinery.wire.values.scalars import Json

REQUEST_SECONDS_MAX: Final = 30.0
_SECONDS_MIN: Final = 0.1
PLAIN: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
PATCHES: Final = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}
"""Media types by the names of `nominee patch --type`."""
_ADMINISTRATOR: Final = "admin"
Document = Mapping[str, Json]
Query = Mapping[str, str | int]


class RestApi:
    """The API server of a cluster, as the administrator calls it; it follows the server to another port.

    Threads may share it.

    Raises:
        ClusterError: the API server does not answer (every method).
        StatusError: the API server rejects the request (every method).
    """

    def __init__(self, directory: Path) -> None:
        self._state, self._pki = StateDirectory(directory), Pki(directory / "pki")
        self._client: httpx2.Client | None = None

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        form: str = PLAIN,
        query: Query | None = None,
        seconds: float = REQUEST_SECONDS_MAX,
    ) -> Document:
        """Send a request and return the answer's document; each step of it may take so many seconds."""
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": form, "Accept": PLAIN}
        with self._reporting() as (client, server):
            answer = client.request(
                method,
                f"{server}{path}",
                content=content,
                headers=headers,
                params=dict(query or {}),
                timeout=min(max(seconds, _SECONDS_MIN), REQUEST_SECONDS_MAX),
            )
        _raise_for_status(answer.status_code, answer.content)
        document: Document = answer.json()
        return document

    def watch(self, path: str, query: Query, seconds: float) -> Iterator[Document]:
        """Yield the events of a watch until it ends, or is silent for so many seconds."""
        with (
            self._reporting() as (client, server),
            client.stream(
                "GET",
                f"{server}{path}",
                params={**query, "watch": "true"},
                timeout=httpx2.Timeout(REQUEST_SECONDS_MAX, read=seconds),
            ) as answer,
        ):
            if answer.is_error:
                _raise_for_status(answer.status_code, answer.read())
            for line in answer.iter_lines():
                event: Document = json.loads(line)
                if event["type"] == "ERROR":
                    raise StatusError.from_message(codec.from_json(meta.Status, event["object"]))
                yield event

    @contextmanager
    def _reporting(self) -> Iterator[tuple[httpx2.Client, str]]:
        """Yield a client and the server's present address; report a lost connection as a ClusterError."""
        running = self._state.live_run_files().values()
        server = next((each for each in running if each.get("component") == "apiserver"), None)
        if server is None:
            raise ClusterError(f"no API server runs in {self._state.path}")
        is_secure = bool(server.get("ca"))
        if self._client is None:
            context = self._context() if is_secure else ssl.create_default_context()
            # Not by a proxy: the API server is on this machine.
            self._client = httpx2.Client(verify=context, timeout=REQUEST_SECONDS_MAX, trust_env=False)
            weakref.finalize(self, self._client.close)
        try:
            yield self._client, f"{'https' if is_secure else 'http'}://{server['rest']}"
        except httpx2.TransportError as error:
            raise ClusterError(f"the API server does not answer: {error or type(error).__name__}") from None

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._pki.ca))
        clients = self._pki.clients
        context.load_cert_chain(clients / f"{_ADMINISTRATOR}.crt", clients / f"{_ADMINISTRATOR}.key")
        return context


def path_of(kind: AnyKind, namespace: str, name: str = "", subresource: str = "") -> str:
    """Return the path of the objects of a kind, or of one of them; "" is all namespaces."""
    base = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    where = f"/namespaces/{namespace}" if kind.namespaced and namespace else ""
    return "/".join([f"{base}{where}/{kind.plural}", *filter(None, (name, subresource))])


def _raise_for_status(code: int, content: bytes) -> None:
    if code < httpx2.codes.BAD_REQUEST:
        return
    try:
        document = json.loads(content)
    except ValueError:
        raise StatusError(code, "", content.decode("utf-8", "replace")) from None
    raise StatusError.from_message(codec.from_json(meta.Status, document))
