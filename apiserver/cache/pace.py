"""The pace of the messages of all watches of a server: events that come between two turns share a message."""

from __future__ import annotations

import asyncio
from typing import Final

from nominee.machinery.runtime.clock import Clock

TURN_SECONDS_MIN: Final = 0.002
TURN_SECONDS_MAX: Final = 0.05
MESSAGE_SECONDS: Final = 0.00025
"""The time that each message adds to a turn: there are never more than 4,000 messages a second, however many
the watchers, up to 200 of them. A message costs more than its events, which then are more."""


class Pace:
    """Lets watches rest after a message, all until the end of the same turn.

    A turn begins with the first message after a silence, which is sent at once. There is one timer for all
    watches: that of the task which began the turn.
    """

    __slots__ = ("_clock", "_messages", "_turn")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._messages = 0
        self._turn: asyncio.Event | None = None

    async def rest(self) -> None:
        """Wait, after a message, for the end of the turn."""
        self._messages += 1
        if self._turn is not None:
            await self._turn.wait()
            return
        turn = self._turn = asyncio.Event()
        try:
            rested = 0.0
            # Others send while this one waits.
            while rested < (seconds := self._seconds()):
                await self._clock.sleep(seconds - rested)
                rested = seconds
        finally:
            self._turn, self._messages = None, 0
            turn.set()

    def _seconds(self) -> float:
        return min(max(self._messages * MESSAGE_SECONDS, TURN_SECONDS_MIN), TURN_SECONDS_MAX)
