"""The port of the REST front, with TLS or without."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc

from nominee.apiserver.fronts.open_files import connection_limits
from nominee.machinery.process.http.http_server import HttpServer
from nominee.machinery.process.http.listening import address_of, bind

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
        await server.serve_until_cancelled(self._listener, task_status.started)


def listen(address: str, *, preferred_port: int = 0) -> socket.socket:
    """Return a listening socket on `host:port`; port 0 is `preferred_port` if that is free, or any.

    Raises: OSError.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    wanted = [int(port)] if int(port or 0) else [*([preferred_port] if preferred_port else []), 0]
    for number in wanted:
        try:
            return bind(host, number, backlog=_BACKLOG)
        except OSError:
            if number == wanted[-1]:
                raise
    raise AssertionError("unreachable")
