"""What a test says, said to the REST front as an ASGI application."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import anyio.from_thread

from tests.apiserver.fronts.adapter import END, Api, Call, Event, Outcome, Stream, patiently
from tests.apiserver.rest.asgi import Reply, Rest
from tests.support.patience import PATIENCE_SECONDS

_METHODS = {
    "create": "POST",
    "get": "GET",
    "list": "GET",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "delete_collection": "DELETE",
}
_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class RestApi(Api):
    name = "rest"

    def __init__(self, portal: anyio.from_thread.BlockingPortal, rest: Rest) -> None:
        super().__init__(portal)
        self.rest = rest

    def ask(self, call: Call) -> Outcome:
        headers = {
            "accept": "application/json",
            "content-type": _PATCHES.get(call.form, "application/json"),
            "user-agent": "suite",
        }
        if isinstance(call.body, bytes):
            data = call.body
        else:
            data = b"" if call.body is None else json.dumps(call.body).encode()
        method, query = _METHODS[call.verb], _query(call.options)
        reply = self._portal.call(self.rest.request, method, _path(call), query, data, headers)
        return Outcome(200 if reply.code < 300 else reply.code, reply.document, tuple(reply.warnings))

    def request(self, method: str, path: str, query: dict[str, str], body: bytes = b"") -> Reply:
        """A request in HTTP's own words."""
        headers = {"accept": "application/json", "content-type": "application/json"}
        reply: Reply = self._portal.call(self.rest.request, method, path, query, body, headers)
        return reply

    @contextmanager
    def _watch(self, call: Call) -> Iterator[Stream]:
        query = _query({"watch": "1", **call.options})
        stream = RestStream(self._portal)
        with self._portal.wrap_async_context_manager(_streaming(self.rest, _path(call), query, stream)):
            yield stream
        self._portal.call(stream.close)


class RestStream:
    """Lines of JSON as they are sent."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal) -> None:
        self._portal = portal
        self._send, self._receive = anyio.create_memory_object_stream[Event](10_000)
        self._rest = b""

    async def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            found = json.loads(line)
            if "type" not in found:
                found = {"type": "REFUSED", "object": found}
            await self._send.send(Event(found["type"], found["object"]))

    async def done(self) -> None:
        await self._send.aclose()

    async def close(self) -> None:
        await self._send.aclose()
        await self._receive.aclose()

    def next(self) -> Event:
        try:
            return self._portal.call(patiently, self._receive.receive)
        except anyio.EndOfStream:
            return END


@asynccontextmanager
async def _streaming(rest: Rest, path: str, query: dict[str, str], stream: RestStream) -> AsyncIterator[None]:
    """A request whose answer is taken as it comes; left when the block ends."""
    left = anyio.Event()
    begun = anyio.Event()
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await left.wait()
            return {"type": "http.disconnect"}
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            begun.set()
            return
        await stream.take(message.get("body", b""))
        if not message.get("more_body", False):
            await stream.done()

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": urlencode(query).encode(),
        "headers": [],
    }
    async with anyio.create_task_group() as group:
        group.start_soon(rest.front, scope, receive, send)
        with anyio.fail_after(PATIENCE_SECONDS):
            await begun.wait()
        yield
        left.set()


def _query(options: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()
    }


def _path(call: Call) -> str:
    kind = call.kind
    parts = ["apis", kind.group] if kind.group else ["api"]
    parts.append(kind.version)
    if kind.namespaced and call.namespace:
        parts += ["namespaces", call.namespace]
    # What is made is named by its document.
    name = "" if call.verb == "create" and not call.subresource else call.name
    parts += [quote(part) for part in (kind.plural, name, call.subresource) if part]
    return "/" + "/".join(parts)
