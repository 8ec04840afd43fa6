"""Wake a loop that waits for work."""

from __future__ import annotations

import anyio


class Signal:
    """Wakes one loop when there may be work."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        """Wake the loop if it waits."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for the next `set`; call it at once after no work was found."""
        self._event = anyio.Event()
        await self._event.wait()
