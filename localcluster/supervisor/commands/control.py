"""The control socket: one command per connection, a JSON line in, a JSON line out.

Requests: {"command": "status"}, {"command": "stop", "component": "scheduler", "kill": true}, ...; answers:
{"ok": true, ...} or {"ok": false, "error": "..."}. A command that takes time is answered when it is done (see
`Pending`).
"""

from __future__ import annotations

import json
import os
import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nominee.localcluster.supervisor.commands.socket_path import reachable
from nominee.localcluster.supervisor.directory import JsonObject

CONNECTIONS_MAX = 32
REQUEST_BYTES_MAX = 64 * 1024
_SEND_SECONDS_MAX = 1.0

Answer = JsonObject


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer that is not available yet: `poll` is called after every event until it returns one."""

    poll: Callable[[], Answer | None]


Handler = Callable[[JsonObject], "Answer | Pending"]


class Control:
    """The server of the socket, on the supervisor's selector."""

    def __init__(self, path: Path, selector: selectors.BaseSelector, handler: Handler) -> None:
        self._path, self._selector, self._handler = path, selector, handler
        self._buffers: dict[socket.socket, bytes] = {}
        self._pending: dict[socket.socket, Pending] = {}
        # The name appears when the socket listens: between bind and listen a client would be refused.
        unready = path.with_name(f".{path.name}")
        unready.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        with reachable(unready) as short:
            old = os.umask(0o177)  # only the owner may control the cluster
            try:
                self._listener.bind(short)
            finally:
                os.umask(old)
        self._listener.listen(CONNECTIONS_MAX)
        unready.replace(path)
        self._listener.setblocking(False)
        selector.register(self._listener, selectors.EVENT_READ, self._on_connect)

    def _on_connect(self, _mask: int) -> None:
        with suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            if len(self._buffers) >= CONNECTIONS_MAX:
                connection.close()
                return
            connection.setblocking(False)
            self._buffers[connection] = b""
            self._selector.register(connection, selectors.EVENT_READ, lambda _mask: self._on_data(connection))

    def _on_data(self, connection: socket.socket) -> None:
        try:
            chunk = connection.recv(REQUEST_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        buffer = self._buffers[connection] + chunk
        if not chunk or len(buffer) > REQUEST_BYTES_MAX:
            self._drop(connection)
            return
        self._buffers[connection] = buffer
        line, complete, _ = buffer.partition(b"\n")
        if complete and connection not in self._pending:
            answer = self._handle(line)
            if isinstance(answer, Pending):
                self._pending[connection] = answer
            else:
                self._send(connection, answer)

    def _handle(self, line: bytes) -> Answer | Pending:
        try:
            request = json.loads(line)
        except ValueError:
            request = None
        if not isinstance(request, dict):
            return {"ok": False, "error": "a request is one line of JSON, an object"}
        return self._handler(request)

    def poll(self) -> None:
        """Answer the commands that are done."""
        for connection, pending in list(self._pending.items()):
            answer = pending.poll()
            if answer is not None:
                self._send(connection, answer)

    @property
    def waiting(self) -> bool:
        """Return whether a client waits for an answer."""
        return bool(self._pending)

    def _send(self, connection: socket.socket, answer: Answer) -> None:
        with suppress(OSError):
            connection.settimeout(_SEND_SECONDS_MAX)
            connection.sendall(json.dumps(answer).encode() + b"\n")
        self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._pending.pop(connection, None)
        self._buffers.pop(connection, None)
        self._selector.unregister(connection)
        connection.close()

    def close(self) -> None:
        """Close the socket; waiting clients see the end of the stream."""
        for connection in list(self._buffers):
            self._drop(connection)
        self._selector.unregister(self._listener)
        self._listener.close()
        self._path.unlink(missing_ok=True)
