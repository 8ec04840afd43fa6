"""HTTP calls to one extender: pooled connections, one deadline, a limited answer.

A call is made once: an extender that binds, or counts licences, must not get it twice. A pooled connection
that the extender has closed is replaced before it is used; one that it closes at that moment fails the call.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlsplit

import anyio

from nominee.scheduler.configuration.config import Extender
from nominee.scheduler.extenders.tls import TransportError, tls_context

IDLE_MAX: Final = 16  # connections kept open to one extender
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024  # the nodes of a very large cluster, whole


class CallError(Exception):
    """An extender could not be called, or its answer cannot be used."""


class Transport:
    """The connections to one extender."""

    def __init__(self, extender: Extender, *, answer_bytes_max: int = ANSWER_BYTES_MAX) -> None:
        """Connect with the first call.

        Raises:
            TransportError: certificates cannot be read, or the URL is not one.
        """
        # Imported for schedulers with extenders only.
        import httpx2

        parts = urlsplit(extender.url_prefix)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise TransportError("urlPrefix", "must be an http or https URL")
        try:
            _ = parts.port
        except ValueError as error:
            raise TransportError("urlPrefix", str(error)) from None
        self._timeout_seconds = extender.http_timeout_seconds
        self._answer_bytes_max = answer_bytes_max
        self._extensions: dict[str, Any] = {}
        if parts.scheme == "https":
            self._extensions["sni_hostname"] = extender.tls.server_name or parts.hostname
        self._failures = (httpx2.HTTPError, OSError, ValueError)
        self._client = httpx2.AsyncClient(
            verify=tls_context(extender) if parts.scheme == "https" else True,
            timeout=None,  # the deadline is for the whole call
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=IDLE_MAX, keepalive_expiry=None
            ),
            trust_env=False,
        )

    async def post(self, url: str, body: Any) -> tuple[int, bytes]:
        """Return status and body of the answer.

        Raises:
            TimeoutError: the answer did not end within the extender's time-out.
            CallError: there is no answer, or it is too large.
        """
        data = json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # the limit is for what is received
        }
        with anyio.fail_after(self._timeout_seconds):
            try:
                async with self._client.stream(
                    "POST", url, content=data, headers=headers, extensions=self._extensions
                ) as answer:
                    found = bytearray()
                    async for chunk in answer.aiter_raw():
                        found += chunk
                        if len(found) > self._answer_bytes_max:
                            raise CallError(f"the answer is larger than {self._answer_bytes_max} bytes")
                    return answer.status_code, bytes(found)
            except self._failures as error:
                raise CallError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        """Close the connections. No call may be under way."""
        await self._client.aclose()
