"""A socket for one call and its answer: every wait ends at the call's deadline, and what was sent is counted.

A time-out of a socket is of one operation only: a server that sends a byte now and then would never meet it.
"""

from __future__ import annotations

import io
import select
import socket
import ssl

from machinery.runtime.clock import Clock

_SENT_AT_ONCE = 1 << 16


class TimedSocket:
    """As much of a socket as `http.client` uses. Begin each call with `begin`."""

    def __init__(self, inner: socket.socket, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._deadline = 0.0
        self._readers = 0
        self._is_closed = False
        self.sent = 0  # bytes of this call

    def begin(self, deadline: float) -> None:
        """A call that must be answered by then (monotonic seconds)."""
        self._deadline = deadline
        self.sent = 0

    def is_stale(self) -> bool:
        """Whether the other side has said something, most likely good-bye, while nothing was asked."""
        if isinstance(self._inner, ssl.SSLSocket) and self._inner.pending():
            return True
        poll = select.poll()
        poll.register(self._inner, select.POLLIN)
        return bool(poll.poll(0))

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            self._arm()
            count = self._inner.send(left[:_SENT_AT_ONCE])
            self.sent += count
            left = left[count:]

    def receive_into(self, buffer: memoryview) -> int:
        self._arm()
        return self._inner.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        self._readers += 1
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """As a socket's own: an answer that is being read is read to its end."""
        self._is_closed = True
        if not self._readers:
            self._inner.close()

    def reader_closed(self) -> None:
        self._readers -= 1
        if self._is_closed and not self._readers:
            self._inner.close()

    def _arm(self) -> None:
        left = self._deadline - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._inner.settimeout(left)


class _Reader(io.RawIOBase):
    """Closing it leaves the socket open, for the next call."""

    def __init__(self, source: TimedSocket) -> None:
        self._source = source

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._source.reader_closed()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what io calls it with
        return self._source.receive_into(buffer)
