"""The port of the REST front, with TLS or without."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc

from nominee.apiserver.fronts.open_files import connection_limits
from nominee.machinery.process.http.http_server import HttpServer

GRACE_SECONDS = 1
KEEP_ALIVE_SECONDS = 120
_BACKLOG = 4096


class RestServer:
    """One port; `await group.start(server.run)`, and it serves until cancelled."""

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        listener: socket.socket,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._app = app
        self._tls = tls
        self._listener = listener
        self.address = address_of(listener)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; report the start to `task_status`."""
        server = HttpServer(self._app, grace_seconds=GRACE_SECONDS, tls=self._tls)
        # Clients keep idle connections for 90 s; one that the server closes first may cost them a request.
        server.config.timeout_keep_alive = KEEP_ALIVE_SECONDS
        server.config.limit_concurrency = connection_limits().rest
        async with anyio.create_task_group() as group:

            async def serve() -> None:
                # Cancelled in the middle, the server would leave its connections open: it is asked to end.
                with anyio.CancelScope(shield=True):
                    await server.serve(sockets=[self._listener])
                group.cancel_scope.cancel()

            group.start_soon(serve)
            try:
                await server.opened.wait()
                task_status.started()
                await anyio.sleep_forever()
            finally:
                server.stop()


def listen(address: str, *, preferred_port: int = 0) -> socket.socket:
    """Return a listening socket on `host:port`; port 0 is `preferred_port` if that is free, or any.

    Raises: OSError.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    wanted = [int(port)] if int(port or 0) else [*([preferred_port] if preferred_port else []), 0]
    for number in wanted:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, number))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            if number == wanted[-1]:
                raise
        else:
            return listener
    raise AssertionError("unreachable")


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
