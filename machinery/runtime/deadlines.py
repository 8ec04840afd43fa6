"""The deadlines of many operations, with one timer of the event loop for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadlines:
    """Calls `expired` with the number of an operation whose deadline has passed.

    The timer is set for the earliest deadline that it has met, and not moved when that operation ends early:
    most deadlines never pass, so that an operation costs an entry in a table.
    """

    def __init__(self, expired: Callable[[int], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._expired = expired
        self._times: dict[int, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def add(self, number: int, at: float) -> None:
        """Set the deadline of an operation, in the loop's time."""
        self._times[number] = at
        if self._timer is None or at < self._timer_at:
            self._set(at)

    def remove(self, number: int) -> None:
        """Forget an operation that has ended."""
        self._times.pop(number, None)

    def close(self) -> None:
        """Forget all operations, and the timer."""
        self._times.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._look)

    def _look(self) -> None:
        self._timer = None
        # A timer may be early by the resolution of the loop's clock.
        now = max(self._loop.time(), self._timer_at)
        for number in [number for number, at in self._times.items() if at <= now]:
            del self._times[number]
            self._expired(number)
        if self._times and self._timer is None:
            self._set(min(self._times.values()))
