"""uvicorn as a well-behaved part of a process: no signal handlers, no ten wake-ups a second, a bounded end.

Imported only by `serving`, when a port is opened.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator
from typing import Any

import anyio
import uvicorn

_BACKLOG = 512


class HttpServer(uvicorn.Server):
    """Serves an ASGI application on given sockets until `stop`."""

    def __init__(self, app: Any, *, grace_seconds: int) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                http="h11",
                ws="none",
                backlog=_BACKLOG,
                timeout_graceful_shutdown=grace_seconds,
                server_header=False,
                date_header=False,
            )
        )
        self.opened = anyio.Event()
        self._stopped = anyio.Event()

    def stop(self) -> None:
        """Take no new connections; `serve` returns when open requests have ended or their grace is over."""
        self.should_exit = True
        self._stopped.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.opened.set()

    async def main_loop(self) -> None:
        # The original polls every 0.1 s, for a Date header and limits that are not used here.
        await self._stopped.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
