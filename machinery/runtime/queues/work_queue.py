"""A queue of keys to reconcile, with client-go's guarantees.

A key that is added while it waits is queued once; one that is added while it is processed is queued again
when that ends; a key that failed returns after an exponential back-off of its own. Source: client-go 1.36,
util/workqueue.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import anyio

from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff

K = TypeVar("K", bound=Hashable)

BACKOFF_BASE_SECONDS = 0.005
BACKOFF_MAX_SECONDS = 30.0
"""client-go's limit is 1000 s; users of a local cluster watch it, and should not wait for so long."""
_BACKOFF = ExponentialBackoff(BACKOFF_BASE_SECONDS, BACKOFF_MAX_SECONDS)
_SLACK_SECONDS = 1e-6
"""A timer may end a rounding error too early; the queue does not start another one for that."""
_DELAY_SECONDS_MIN = 2 * _SLACK_SECONDS
"""A rounding error that is left of a delay is a delay, or the key returns before any time has passed."""


class WorkQueue(Generic[K]):
    """Keys that wait, keys in processing and keys to be added later. One event loop; no locks needed.

    Its size is bounded by the number of distinct keys.
    """

    backoff: ExponentialBackoff = _BACKOFF

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._failures: dict[K, int] = {}
        self._later: list[tuple[float, int, K]] = []
        self._later_at: dict[K, float] = {}
        self._order = itertools.count()
        self._wake: anyio.Event | None = None

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Queue a key unless it waits already; cheap, and never blocks."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.append(key)
            self._notify()

    def add_after(self, key: K, seconds: float) -> None:
        """Queue a key after a while; of several times for one key the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        at = self._clock.monotonic() + max(seconds, _DELAY_SECONDS_MIN)
        if self._later_at.get(key, float("inf")) <= at:
            return
        self._later_at[key] = at
        heapq.heappush(self._later, (at, next(self._order), key))
        self._notify()

    def add_rate_limited(self, key: K) -> None:
        """Queue a key that failed, after its back-off: without another one, 5 ms doubling up to 30 s."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, self.backoff.delay(failures))

    def forget(self, key: K) -> None:
        """End the key's back-off after a success: its next failure waits for the shortest time."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Wait for the next key. The caller must report the end of its processing with `done`."""
        while (key := self.get_nowait()) is None:
            await self._wait()
        return key

    def get_nowait(self) -> K | None:
        """Return the next key, or None when none is ready. The caller must call `done` with it."""
        self._promote()
        if not self._ready:
            return None
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """End the processing of a key; if it was added meanwhile it waits again."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.append(key)
            self._notify()

    async def run_workers(self, work: Callable[[K], Awaitable[None]], workers_max: int) -> None:
        """Call `work(key)` for each key, at most `workers_max` at once, until cancelled.

        There is one task per key in processing, and none for keys that wait or rest. `work` must not raise.
        """
        running = 0

        async def worker() -> None:
            nonlocal running
            try:
                while (key := self.get_nowait()) is not None:
                    try:
                        await work(key)
                    finally:
                        self.done(key)
            finally:
                running -= 1

        async with anyio.create_task_group() as group:
            while True:
                self._promote()
                for _ in range(min(len(self._ready), workers_max - running)):
                    running += 1
                    group.start_soon(worker)
                await self._wait()

    def _notify(self) -> None:
        """Wake all waiters: each looks for itself whether there is a key for it."""
        if self._wake is not None:
            self._wake.set()
            self._wake = None

    def _promote(self) -> None:
        """Queue the keys whose time has come."""
        if not self._later:
            return
        now = self._clock.monotonic() + _SLACK_SECONDS
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            if self._later_at.get(key) == at:
                del self._later_at[key]
                self.add(key)

    async def _wait(self) -> None:
        """Wait until a key is added or the next delayed key is due."""
        if self._wake is None:
            self._wake = anyio.Event()
        wake = self._wake
        if not self._later:
            await wake.wait()
            return

        async def timer(seconds: float) -> None:
            await self._clock.sleep(seconds)
            self._notify()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(timer, self._later[0][0] - self._clock.monotonic())
            await wake.wait()
            tasks.cancel_scope.cancel()
