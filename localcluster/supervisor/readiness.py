"""Readiness: a process is ready when its run file exists and its health check answers 200.

The supervisor removes the run file before it starts a process, so a run file that exists is new.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

from nominee.localcluster.supervisor.clock import Monotonic
from nominee.localcluster.supervisor.directory import StateDirectory, read_json

PROBE_SECONDS_MAX = 1.0
INTERVAL_SECONDS = 0.02
_ANSWER_BYTES_MAX = 4096


class Probe:
    """A check of one process until it is ready, which never blocks."""

    def __init__(
        self,
        name: str,
        pid: int,
        ready_path: str,
        directory: StateDirectory,
        selector: selectors.BaseSelector,
        clock: Monotonic,
        on_ready: Callable[[str], None],
    ) -> None:
        self._name, self._pid, self._ready_path, self._directory = name, pid, ready_path, directory
        self._selector, self._clock, self._on_ready = selector, clock, on_ready
        self._socket: socket.socket | None = None
        self._answer = b""
        self._not_before = 0.0
        self._deadline = 0.0

    def poll(self) -> None:
        """Make progress without blocking; call it about every INTERVAL_SECONDS."""
        now = self._clock()
        if self._socket is not None:
            if now >= self._deadline:
                self.close()
            return
        if now < self._not_before:
            return
        self._not_before = now + INTERVAL_SECONDS
        document = read_json(self._directory.run_file(self._name))
        if document is None or document.get("pid") != self._pid:
            return
        address = document.get("http")
        if not isinstance(address, str) or not address:
            self._on_ready(self._name)
            return
        self._connect(address, now)

    def _connect(self, address: str, now: float) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdigit():
            return
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._answer = b""
        self._deadline = now + PROBE_SECONDS_MAX
        self._socket.connect_ex((host, int(port)))
        self._selector.register(self._socket, selectors.EVENT_WRITE, self._on_io)

    def _on_io(self, mask: int) -> None:
        assert self._socket is not None
        try:
            if mask & selectors.EVENT_WRITE:
                request = f"GET {self._ready_path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                self._socket.sendall(request.encode())
                self._selector.modify(self._socket, selectors.EVENT_READ, self._on_io)
                return
            chunk = self._socket.recv(_ANSWER_BYTES_MAX)
        except OSError:
            self.close()
            return
        self._answer += chunk
        status_line, complete, _ = self._answer.partition(b"\r\n")
        if complete or not chunk or len(self._answer) > _ANSWER_BYTES_MAX:
            self.close()
            if status_line.split(b" ")[1:2] == [b"200"]:
                self._on_ready(self._name)

    def close(self) -> None:
        """Cancel the current attempt; the next `poll` begins another one."""
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None
