"""A process's HTTP port: health, metrics, failpoints, and the component's own paths.

`/healthz`, `/livez`, `/readyz` and `/metrics/slis` (machinery.process.health), `/metrics` (Prometheus),
failpoints, faults and the clock (machinery.process.fault_endpoints); `add_route` for `/debug/...`. Starlette,
uvicorn and prometheus-client are imported when the port is opened (60 ms, 6 MB). Everything but health wants
the token (machinery.process.serving_token), and nothing is answered to a foreign web page
(machinery.process.http_guard).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from nominee.machinery.process.http import http_guard
from nominee.machinery.process.http.listening import address_of, bind
from nominee.machinery.process.serving_port import fault_endpoints
from nominee.machinery.process.serving_port.health import ENDPOINTS, HEADERS, SLIS_PATH, Health

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from nominee.machinery.process.http.http_server import HttpServer

Handler = Callable[["Request"], Awaitable["Response"]]

GRACE_SECONDS = 1
"""How long open requests may take when the port is closed; then they are dropped."""
_REMEDY = "show the token in pki/serving.token of the state directory (Authorization: Bearer TOKEN)"


class Serving:
    """One HTTP server; add checks and routes, then `await group.start(serving.run)`."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host = host
        self._port = port
        self.health = Health()
        self._added: list[Any] = []
        self._app: Starlette | None = None
        self._server: HttpServer | None = None
        self._registry: CollectorRegistry | None = None
        self.address = ""
        self.token = ""
        """What clients show; "" refuses all but health."""

    def metrics(self) -> CollectorRegistry:
        """Return the registry that /metrics serves: the interpreter's, unless `serve_metrics` was called."""
        from prometheus_client import REGISTRY

        return REGISTRY if self._registry is None else self._registry

    def serve_metrics(self, registry: CollectorRegistry) -> None:
        """Serve these metrics instead of the interpreter's."""
        self._registry = registry

    def add_route(self, path: str, handler: Handler, methods: Sequence[str] = ("GET",)) -> None:
        """Serve a path (Starlette's pattern: `/debug/queue`, `/api/{rest:path}`); also while it runs."""
        from starlette.routing import Route

        route = Route(path, handler, methods=list(methods))
        self._added.append(route)
        if self._app is not None:
            self._app.router.routes.append(route)

    def mount(self, path: str, app: http_guard.App) -> None:
        """Serve an ASGI application under a path."""
        from starlette.routing import Mount

        route = Mount(path, app)
        self._added.append(route)
        if self._app is not None:
            self._app.router.routes.append(route)

    async def run(self, *, task_status: anyio.abc.TaskStatus[str] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled or stopped; starts with the address, `127.0.0.1:41000`. OSError if taken."""
        from nominee.machinery.process.http.http_server import HttpServer

        listener = bind(self._host, self._port)
        guarded = http_guard.with_token(self.application(), self.token, _is_open, _REMEDY)
        self._server = HttpServer(http_guard.same_machine(guarded), grace_seconds=GRACE_SECONDS)
        self.address = address_of(listener)
        await self._server.serve_until_cancelled(listener, lambda: task_status.started(self.address))

    def stop(self) -> None:
        """End `run`: no new connections, GRACE_SECONDS for open ones."""
        if self._server is not None:
            self._server.stop()

    def application(self) -> Starlette:
        """Return the ASGI application, without the protection by the token; `add_route` adds to it."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        if self._app is None:
            self._app = Starlette(
                routes=[
                    *(Route(f"/{endpoint}", self._health) for endpoint in ENDPOINTS),
                    *(Route(f"/{endpoint}/{{name:path}}", self._health) for endpoint in ENDPOINTS),
                    Route("/metrics", self._metrics),
                    Route(SLIS_PATH, self._slis),
                    *(
                        Route(path, handler, methods=list(methods))
                        for path, handler, methods in fault_endpoints.ROUTES
                    ),
                    *self._added,
                ]
            )
        return self._app

    async def _health(self, request: Request) -> Response:
        """Answer a health endpoint or the path of one check."""
        from starlette.responses import PlainTextResponse

        query = {name: request.query_params.getlist(name) for name in request.query_params}
        answer = await self.health.answer(request.url.path, query)
        return PlainTextResponse(answer.text, answer.code, headers=HEADERS)

    async def _metrics(self, request: Request) -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
        from starlette.responses import Response

        return Response(generate_latest(self.metrics()), media_type=CONTENT_TYPE_LATEST)

    async def _slis(self, request: Request) -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST
        from starlette.responses import Response

        return Response(self.health.slis(), media_type=CONTENT_TYPE_LATEST)


def _is_open(path: str) -> bool:
    """Return whether a path is answered to all: health, as upstream's --authorization-always-allow-paths."""
    return path.removeprefix("/").partition("/")[0] in ENDPOINTS
