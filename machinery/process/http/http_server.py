"""uvicorn inside a process: without signal handlers, without ten wake-ups a second, with a bounded shutdown.

Imported only by `serving`, when a port is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Generator
from typing import Any

import anyio
import anyio.abc
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nominee.machinery.process.http.accepting import Acceptor
from nominee.machinery.process.http.http_connection import StrictConnection
from nominee.machinery.process.http.http_guard import App

_BACKLOG = 4096
_HEADER_BYTES_MAX = 16 << 10
PEER_CERTIFICATE = "peer_certificate"


HEADER_SECONDS_MAX = 32.0
"""For a request's whole header to come, from the connection's or its own first byte (as kube-apiserver's
ReadHeaderTimeout); then the connection is closed."""


class _Protocol(H11Protocol):
    """A connection that has to come to its point: the original waits for a first request forever."""

    conn: StrictConnection

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.conn = StrictConnection(_HEADER_BYTES_MAX)
        self._header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        secure = transport.get_extra_info("ssl_object")
        if secure is not None:
            # In each request's scope["state"]: the client's certificate (DER), None where it has none.
            self.app_state = {**self.app_state, PEER_CERTIFICATE: secure.getpeercert(binary_form=True)}
        self._expect_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._header_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        if self._header_timer is None and (before is None or before.response_complete):
            self._expect_header()
        super().data_received(data)
        if self.cycle is not before:
            self._header_came()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the application refuses the request, and the original advises to install a library."""

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(f"400 Bad Request: {self.conn.problem}" if self.conn.problem else msg)

    def _expect_header(self) -> None:
        self._header_timer = self.loop.call_later(HEADER_SECONDS_MAX, self.transport.close)

    def _header_came(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


class HttpServer(uvicorn.Server):
    """Serves an ASGI application on given sockets until `stop`."""

    def __init__(self, app: App, *, grace_seconds: int, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                http=_Protocol,
                ws="none",
                timeout_graceful_shutdown=grace_seconds,
                server_header=False,
                date_header=False,
            )
        )
        self.opened = anyio.Event()
        self._tls = tls
        self._group: anyio.abc.TaskGroup | None = None
        self._stopped = anyio.Event()

    def stop(self) -> None:
        """Take no new connections; `serve` returns when open requests have ended or their grace is over."""
        self.should_exit = True
        self._stopped.set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        async with anyio.create_task_group() as self._group:
            await super().serve(sockets)

    async def serve_until_cancelled(self, listener: socket.socket, started: Callable[[], object]) -> None:
        """Serve on a socket until cancelled or stopped; call `started` when it accepts connections."""
        async with anyio.create_task_group() as group:

            async def serve() -> None:
                # Cancelled in the middle, the server would leave its connections open: it is asked to end.
                with anyio.CancelScope(shield=True):
                    await self.serve(sockets=[listener])
                group.cancel_scope.cancel()

            group.start_soon(serve)
            try:
                await self.opened.wait()
                started()
                await anyio.sleep_forever()
            finally:
                self.stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # The original lets the event loop accept: any number of connections, a minute each for TLS.
        await self.lifespan.startup()
        assert self._group is not None
        self.servers: list[Any] = [
            Acceptor(each, self._make_protocol, tls=self._tls) for each in sockets or ()
        ]
        for each, acceptor in zip(sockets or (), self.servers, strict=True):
            each.listen(_BACKLOG)
            await self._group.start(acceptor.run)
        self.started = True
        self.opened.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # The listeners are closed by the original, and must not be waited on any more.
        for acceptor in self.servers:
            acceptor.close()
            await acceptor.wait_closed()
        await super().shutdown(sockets)

    def _make_protocol(self) -> asyncio.Protocol:
        return _Protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def main_loop(self) -> None:
        # The original polls every 0.1 s, for a Date header and limits that are not used here.
        await self._stopped.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
