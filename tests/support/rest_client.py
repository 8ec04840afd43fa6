"""The calls of a test on the API server, over REST: JSON in and out, as kubectl makes them.

`ObjectClient` are the calls that both this client and the project's own, which talks gRPC, have.
"""

from __future__ import annotations

import http.client
import json
from typing import Protocol
from urllib.parse import urlencode

import anyio.to_thread

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import AnyKind, Kind, M
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import codec
from nominee.machinery.wire.values.scalars import Json
from tests.support.cluster import WAIT_SECONDS_MAX, Cluster

Document = dict[str, Json]

_STRATEGIC = "application/strategic-merge-patch+json"


class ObjectClient(Protocol):
    """Creates, reads, patches and deletes objects, over either front of the API server."""

    async def create(self, obj: M) -> M: ...

    async def get(self, kind: Kind[M], name: str, namespace: str = "") -> M: ...

    async def patch(
        self, kind: Kind[M], name: str, namespace: str, patch: object, *, subresource: str = ""
    ) -> M: ...

    async def delete(
        self, kind: AnyKind, name: str, namespace: str = "", *, grace_period_seconds: int | None = None
    ) -> bool: ...


class RestClient:
    """A client of the REST front at `host:port`; every call is one connection."""

    def __init__(self, address: str) -> None:
        self._address = address

    @classmethod
    def of(cls, cluster: Cluster) -> RestClient:
        """Return a client of the cluster's running API server, which requires no credentials."""
        return cls(str(cluster.run_file("apiserver").document["rest"]))

    async def create(self, obj: M) -> M:
        kind, key = kinds.of(obj), key_of(obj)
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **codec.to_json(obj)}
        return codec.from_json(kind.message, await self._request("POST", _path(kind, key.namespace), body))

    async def get(self, kind: Kind[M], name: str, namespace: str = "") -> M:
        return codec.from_json(kind.message, await self._request("GET", _path(kind, namespace, name)))

    async def patch(
        self, kind: Kind[M], name: str, namespace: str, patch: object, *, subresource: str = ""
    ) -> M:
        """Apply a strategic merge patch."""
        path = _path(kind, namespace, name, subresource)
        return codec.from_json(kind.message, await self._request("PATCH", path, patch, form=_STRATEGIC))

    async def delete(
        self, kind: AnyKind, name: str, namespace: str = "", *, grace_period_seconds: int | None = None
    ) -> bool:
        """Delete; true if it is gone at once, which the server answers with a Status."""
        query = {} if grace_period_seconds is None else {"gracePeriodSeconds": grace_period_seconds}
        path = f"{_path(kind, namespace, name)}?{urlencode(query)}"
        return bool((await self._request("DELETE", path))["kind"] == "Status")

    async def _request(self, method: str, path: str, body: object = None, *, form: str = "") -> Document:
        """Send a request and return the answer's document. Raises: StatusError."""
        code, document = await anyio.to_thread.run_sync(self._send, method, path, body, form)
        if code >= 400:
            raise errors.StatusError.from_message(codec.from_json(meta.Status, document))
        return document

    def _send(self, method: str, path: str, body: object, form: str) -> tuple[int, Document]:
        connection = http.client.HTTPConnection(self._address, timeout=WAIT_SECONDS_MAX)
        try:
            headers = {"Accept": "application/json", "Content-Type": form or "application/json"}
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def _path(kind: AnyKind, namespace: str, name: str = "", subresource: str = "") -> str:
    base = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    where = f"/namespaces/{namespace}" if kind.namespaced else ""
    return "/".join([f"{base}{where}/{kind.plural}", *filter(None, (name, subresource))])
