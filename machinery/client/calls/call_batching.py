"""Bookkeeping of the calls that share a stream (`Calls` in api.proto), at both of its ends.

A message leaves the client at once if the server has acknowledged all before it. Otherwise its calls wait for
the acknowledgement, which rides with the server's answers, while other calls join them; but for no more than
`TURNS_MAX` turns of the client's loop, and never for a timer. When two messages are unacknowledged, the
server acknowledges them without an answer. So a call waits for the server's reading, never for the end of
another call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

UNACKNOWLEDGED_MAX: Final = 2
TURNS_MAX: Final = 8
"""Turns of the event loop for which a message may wait for more to go with it."""
CALLS_MAX: Final = 256
"""Calls, or answers, in one message."""
BYTES_MAX: Final = 1 << 20
"""Bytes in one message; a single answer may exceed it, a larger call does not go by the stream."""
OPEN_MAX: Final = 1_000
"""Calls of one stream that have no answer yet; more wait at the client."""
WAITING_MAX: Final = 10_000
"""Calls that wait at the client; more do not go by the stream."""


class ProtocolError(Exception):
    """The other end breaks the rules of the stream."""


@dataclass(frozen=True, slots=True)
class Outgoing(Generic[T]):
    """The content of a client's message: calls by their ids, and the ids of calls that are given up."""

    calls: list[tuple[int, T]]
    cancellations: list[int]


class ClientCalls(Generic[T]):
    """The calls of the client's end: waiting, then open, until they end.

    `T` is the caller's own record of a call.
    """

    def __init__(self) -> None:
        self._next_id = 1
        self._waiting: dict[int, tuple[T, int]] = {}
        self._open: dict[int, T] = {}
        self._cancelled: list[int] = []
        self._sent = 0
        self._acknowledged = 0

    def has_room(self) -> bool:
        """Return whether another call may wait."""
        return len(self._waiting) < WAITING_MAX

    def add(self, call: T, size: int) -> int:
        """Let a call of at most `BYTES_MAX` bytes wait for the next message; return its id."""
        number = self._next_id
        self._next_id = number + 1
        self._waiting[number] = (call, size)
        return number

    def take(self, turns: int) -> Outgoing[T] | None:
        """Return the next message if one leaves; its calls are open from now on.

        `turns` is how many turns of the loop its first call has waited while `wants_to_send`.
        """
        if self._sent - self._acknowledged >= (UNACKNOWLEDGED_MAX if turns >= TURNS_MAX else 1):
            return None
        waiting, opened = self._waiting, self._open
        calls: list[tuple[int, T]] = []
        room, bytes_left = min(CALLS_MAX, OPEN_MAX - len(opened)), BYTES_MAX
        for number, (call, size) in waiting.items():
            bytes_left -= size
            if len(calls) >= room or bytes_left < 0:
                break
            calls.append((number, call))
        if not calls and not self._cancelled:
            return None
        for number, call in calls:
            del waiting[number]
            opened[number] = call
        cancelled, self._cancelled = self._cancelled, []
        self._sent += 1
        return Outgoing(calls, cancelled)

    def acknowledge(self, count: int) -> None:
        """Take the number of messages that the server has read. Raises: ProtocolError."""
        if not self._acknowledged <= count <= self._sent:
            raise ProtocolError(f"{count} of {self._sent} messages acknowledged after {self._acknowledged}")
        self._acknowledged = count

    def finish(self, number: int) -> T | None:
        """End an open call that has its answer; None if the client has given it up."""
        return self._open.pop(number, None)

    def give_up(self, number: int) -> T | None:
        """End a call without its answer, and return it; the server is notified if it has the call."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            return waiting[0]
        opened = self._open.pop(number, None)
        if opened is not None:
            self._cancelled.append(number)
        return opened

    def wants_to_send(self) -> bool:
        """Return whether a message leaves now, or after some turns of the loop."""
        return self._sent - self._acknowledged < UNACKNOWLEDGED_MAX and bool(
            self._cancelled or (self._waiting and len(self._open) < OPEN_MAX)
        )

    def drop_all(self) -> list[T]:
        """Return the calls that have not ended, and forget them: the stream is broken."""
        dropped = [*self._open.values(), *(call for call, _ in self._waiting.values())]
        self._open.clear()
        self._waiting.clear()
        return dropped

    def is_idle(self) -> bool:
        """Return whether no call waits or is open."""
        return not self._open and not self._waiting


class ServerCalls(Generic[T]):
    """The calls of the server's end. `T` is the server's own record of an answer."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._ready: list[tuple[T, int]] = []
        self._read = 0
        self._acknowledged = 0

    def message_read(self) -> None:
        """Count a message of the client."""
        self._read += 1

    def begin(self, number: int) -> None:
        """Begin a call. Raises: ProtocolError for an id that is open, or too many open calls."""
        if number in self._open:
            raise ProtocolError(f"call {number} is open already")
        if len(self._open) + len(self._ready) >= 2 * OPEN_MAX:
            raise ProtocolError(f"more than {2 * OPEN_MAX} calls are open")
        self._open.add(number)

    def answer(self, number: int, answer: T, size: int) -> None:
        """Let the answer to an open call wait for the next message."""
        self._open.discard(number)
        self._ready.append((answer, size))

    def cancel(self, number: int) -> None:
        """End a call without an answer; one that has ended already is not open."""
        self._open.discard(number)

    def wants_to_send(self) -> bool:
        """Return whether a message leaves now, or after some turns of the loop."""
        return bool(self._ready) or self._read - self._acknowledged >= UNACKNOWLEDGED_MAX

    def take(self, turns: int) -> tuple[list[T], int] | None:
        """Return the answers of the next message and the acknowledgement, or None.

        `turns` is how many turns of the loop it has waited while `wants_to_send`; without another open call
        there is nothing to wait for.
        """
        ready = self._ready
        if not self.wants_to_send() or (turns < TURNS_MAX and self._open and len(ready) < CALLS_MAX):
            return None
        self._acknowledged = self._read
        answers: list[T] = []
        bytes_left = BYTES_MAX
        for answer, size in ready[:CALLS_MAX]:
            bytes_left -= size
            if answers and bytes_left < 0:
                break
            answers.append(answer)
        del ready[: len(answers)]
        return answers, self._acknowledged

    def is_idle(self) -> bool:
        """Return whether no call is open and no answer waits."""
        return not self._open and not self._ready
