"""A signal that wakes one waiting task."""

from __future__ import annotations

import anyio


class Signal:
    """Wakes the task that waits for a change; a change without a waiting task wakes the next one."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float | None) -> None:
        """Wait for a change, for at most so many seconds."""
        with anyio.move_on_after(seconds):
            await self._event.wait()
        self._event = anyio.Event()
