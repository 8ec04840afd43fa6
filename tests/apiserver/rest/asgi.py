"""The REST front without a port: requests as ASGI calls."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

import anyio

from nominee.apiserver.access.access import OPEN, Access
from nominee.apiserver.admission.interface import Plugin
from nominee.apiserver.chain.filters import Dependencies
from nominee.apiserver.chain.metrics import RequestMetrics
from nominee.apiserver.flow_control.controller import FlowControl
from nominee.apiserver.fronts.rest.front import FrontOptions, RestFront
from nominee.apiserver.process.bootstrap import bootstrap
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import Clock, FakeClock
from tests.apiserver.registry.memory_storage import MemoryCache, MemoryStorage

VERSION = Version(1, 36)


@dataclass(slots=True)
class Reply:
    """What came back; `pieces` are the body as it was sent."""

    code: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")

    @property
    def warnings(self) -> list[str]:
        """The texts of the Warning headers."""
        texts = [value for key, value in self.headers if key == "warning"]
        return [text.removeprefix('299 - "')[:-1].replace('\\"', '"').replace("\\\\", "\\") for text in texts]


class Rest:
    """A client of a front."""

    def __init__(self, front: RestFront, registry: Any = None, metrics: RequestMetrics | None = None) -> None:
        self.front = front
        self.registry = registry
        self.metrics = metrics or RequestMetrics()

    async def request(
        self,
        method: str,
        path: str,
        query: dict[str, Any] | None = None,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """One request and its whole answer."""
        reply = Reply()
        sent = False

        async def receive() -> MutableMapping[str, Any]:
            nonlocal sent
            if sent:
                await anyio.sleep_forever()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                reply.code = message["status"]
                reply.headers = [(k.decode("latin-1"), v.decode()) for k, v in message["headers"]]
            elif method != "HEAD":  # an HTTP server sends no body after HEAD
                reply.pieces.append(message.get("body", b""))

        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": urlencode(query or {}, doseq=True).encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
        }
        await self.front(scope, receive, send)
        return reply

    async def json(
        self,
        method: str,
        path: str,
        document: Any = None,
        query: dict[str, Any] | None = None,
        *,
        content: str = "application/json",
        **more: str,
    ) -> Reply:
        """A request with a JSON body."""
        headers = {"accept": "application/json", "content-type": content, **more}
        data = b"" if document is None else json.dumps(document).encode()
        return await self.request(method, path, query, data, headers)


def rest_front(
    registry: Any,
    clock: Clock,
    options: FrontOptions,
    metrics: RequestMetrics | None = None,
    *,
    access: Access = OPEN,
    flow_control: FlowControl | None = None,
) -> RestFront:
    """The REST front alone, with a request chain of its own."""
    control = flow_control or FlowControl(clock)
    return RestFront(Dependencies(registry, access, control, clock, metrics or RequestMetrics()), options)


def front_over(registry: Any, clock: Any, version: Version = VERSION) -> Rest:
    metrics = RequestMetrics()
    front = rest_front(registry, clock, FrontOptions(version, "127.0.0.1:1"), metrics)
    return Rest(front, registry, metrics)


async def in_memory(
    *admission: Plugin,
    clock: FakeClock | None = None,
    gates: Mapping[str, bool] | None = None,
    version: Version = VERSION,
) -> Rest:
    """A server (at 1.36) on an empty dictionary, bootstrapped; it cannot list or watch."""
    storage = MemoryStorage()
    registry = Registry(
        storage,
        MemoryCache(storage),
        None,
        gates=Gates("apiserver", version, gates or {}),
        clock=(clock := clock or FakeClock()),
        rng=random.Random(1),
        admission=admission,
    )
    await bootstrap(registry)
    return front_over(registry, clock, version)
