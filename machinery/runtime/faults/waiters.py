"""Tasks that wait until they are released together."""

from __future__ import annotations

import anyio


class Waiters:
    """The tasks that wait at one point; `len` is their number."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: list[anyio.Event] = []

    def __len__(self) -> int:
        return len(self._events)

    async def wait(self) -> None:
        """Wait until the next `release`."""
        event = anyio.Event()
        self._events.append(event)
        try:
            await event.wait()
        finally:
            if event in self._events:  # cancelled before its release
                self._events.remove(event)

    def release(self) -> None:
        """Let every waiting task continue."""
        events, self._events = self._events, []
        for event in events:
            event.set()
