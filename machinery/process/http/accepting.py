"""Accept connections, and keep those that have not yet begun few and short.

A connection costs next to nothing until it sends its first bytes; only then is its protocol made and, on a
port with TLS, the handshake done (50 KB). A client that connects and stays silent, or never finishes the
handshake, is dropped after PENDING_SECONDS_MAX, and earlier where PENDING_MAX others have come after it: so a
flood of such connections displaces itself, and a client that goes on is served.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable

import anyio
import anyio.abc

from nominee.machinery.runtime import logs

PENDING_SECONDS_MAX = 10.0
"""From a connection's acceptance to the end of its TLS handshake; without TLS, to its first byte."""
PENDING_MAX = 256
_ACCEPTED_AT_ONCE_MAX = 16
_NO_FILE_PAUSE_SECONDS = 0.1
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logs.get()


class Acceptor:
    """One listener; `run` until `close`. The connections that it has handed over live on."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener = listener
        self._make_protocol = make_protocol
        self._tls = tls
        self._scope = anyio.CancelScope()
        self._closed = anyio.Event()
        # In the order of arrival.
        self._pending: dict[socket.socket, anyio.CancelScope] = {}

    def close(self) -> None:
        """Stop accepting, and drop the connections that have not begun."""
        self._scope.cancel()

    async def wait_closed(self) -> None:
        """Return when `run` has ended."""
        await self._closed.wait()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Accept until closed."""
        task_status.started()
        try:
            with self._scope:
                async with anyio.create_task_group() as group:
                    while True:
                        await anyio.wait_readable(self._listener)
                        if not self._accept(group):
                            # The connections wait in the kernel until others have ended.
                            await anyio.sleep(_NO_FILE_PAUSE_SECONDS)
        finally:
            self._closed.set()

    def _accept(self, group: anyio.abc.TaskGroup) -> bool:
        """Accept some of the waiting connections; False where the process may open no more files."""
        for _ in range(_ACCEPTED_AT_ONCE_MAX):
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno in _NO_FILES:
                    _log.warning("A connection cannot be accepted", error=str(error))
                    return False
                # That client has gone already.
                continue
            connection.setblocking(False)
            if len(self._pending) >= PENDING_MAX:
                self._drop_oldest()
            scope = anyio.move_on_after(PENDING_SECONDS_MAX)
            self._pending[connection] = scope
            group.start_soon(self._begin, connection, scope)
        return True

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._pending))
        self._pending.pop(oldest).cancel()

    async def _begin(self, connection: socket.socket, scope: anyio.CancelScope) -> None:
        """Hand a connection over once its client has shown that it goes on; else close it."""
        begun = False
        try:
            with scope:
                await anyio.wait_readable(connection)
                await self._hand_over(connection)
                begun = True
        except OSError as error:  # TLS's errors too
            _log.debug("A connection did not begin", error=str(error))
        finally:
            self._pending.pop(connection, None)
            if not begun:
                connection.close()

    async def _hand_over(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = asyncio.get_running_loop()
        if self._tls is None:
            await loop.connect_accepted_socket(self._make_protocol, connection)
        else:
            await loop.connect_accepted_socket(
                self._make_protocol,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=PENDING_SECONDS_MAX,
            )
