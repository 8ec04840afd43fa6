"""Timers for the whole process: one task, however many nodes and pods wait."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Final

import anyio

from nominee.kubelet.pod_sync.step import EARLY_SECONDS_MAX
from nominee.machinery.runtime.clock import Clock

SLOTS: Final = 20
"""Moments of an interval at which `every` calls back: calls that are due together share a message."""


class Timers:
    """Calls functions at given times (seconds of `clock.monotonic`), in order. `run` must run beside it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = clock.monotonic()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._changed = anyio.Event()
        self._sleeps = False

    def __len__(self) -> int:
        return len(self._heap)

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call back once, from the loop. There is no cancel: a callback checks whether it still applies."""
        self._at(self._clock.monotonic() + max(seconds, 0.0), callback)

    def every(self, interval: float, callback: Callable[[], bool], *, first: float) -> None:
        """Call back after about `first` seconds and from then on every `interval`, until it returns False.

        The interval has `SLOTS` moments, the same for all calls, of which the first call gets the nearest.
        Each call keeps its place in the interval: where the process stood still and several are late, they
        are made up for at once, but they stay as far apart as they were.
        """
        slot, now = interval / SLOTS, self._clock.monotonic()
        when = max(self._begun + round((now + first - self._begun) / slot) * slot, now)

        def due() -> None:
            nonlocal when
            if callback():
                missed = math.floor((self._clock.monotonic() - when) / interval)
                when += interval * (max(missed, 0) + 1)
                self._at(when, due)

        self._at(when, due)

    def _at(self, when: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (when, next(self._order), callback))
        if self._heap[0][0] == when:
            self._changed.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._changed = anyio.Event()
            self._call_due()
            if not self._heap:
                await self._changed.wait()
                continue
            wait = self._heap[0][0] - self._clock.monotonic()
            self._sleeps = True
            async with anyio.create_task_group() as group:
                group.start_soon(self._sleep, wait, self._changed)
                await self._changed.wait()
                if self._sleeps:  # or else it costs the text of a reason
                    group.cancel_scope.cancel()

    async def _sleep(self, seconds: float, woken: anyio.Event) -> None:
        await self._clock.sleep(seconds)
        self._sleeps = False
        woken.set()

    def _call_due(self) -> None:
        now = self._clock.monotonic() + EARLY_SECONDS_MAX
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()
