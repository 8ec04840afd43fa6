"""The clock of a simulated process."""

from __future__ import annotations

import anyio

from nominee.simulation.event_loop.loop import SimulatedLoop

EPOCH_SECONDS = 1_767_225_600.0
"""When simulations begin: 2026-01-01T00:00:00Z."""


class SimulatedClock:
    """The loop's time as wall time; `offset` seconds more, if the wall clock of the process was shifted."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.offset = 0.0

    def now(self) -> float:
        return EPOCH_SECONDS + self._loop.time() + self.offset

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(seconds, 0.0))
