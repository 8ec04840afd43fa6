"""A queue of keys to reconcile, with client-go's promises.

A key that is added again while it waits is queued once; one added while it is worked on is queued again when
that work is done; failures come back after an exponential back-off of their own. Source: client-go 1.36,
util/workqueue.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

import anyio

from machinery.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)

BACKOFF_BASE_SECONDS = 0.005
BACKOFF_MAX_SECONDS = 30.0
"""client-go's limit is 1000 s; a local cluster is watched by a person, who should not wait for so long."""
_SLACK_SECONDS = 1e-6
"""A timer may end a rounding error too early; it is not started again for that."""


class WorkQueue(Generic[K]):
    """Keys waiting, keys worked on and keys to be added later. One event loop; no locks needed.

    Its size is bounded by the number of distinct keys.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._failures: dict[K, int] = {}
        self._later: list[tuple[float, int, K]] = []
        self._later_at: dict[K, float] = {}
        self._order = itertools.count()
        self._wake = anyio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Queues a key unless it waits already."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.append(key)
            self._notify()

    def add_after(self, key: K, seconds: float) -> None:
        """Queues a key after a while; of several times for one key the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        at = self._clock.monotonic() + seconds
        if self._later_at.get(key, float("inf")) <= at:
            return
        self._later_at[key] = at
        heapq.heappush(self._later, (at, next(self._order), key))
        self._notify()

    def add_rate_limited(self, key: K) -> None:
        """Queues a key that failed, after its back-off: 5 ms doubling up to 30 s."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(BACKOFF_BASE_SECONDS * 2 ** min(failures, 30), BACKOFF_MAX_SECONDS))

    def forget(self, key: K) -> None:
        """The key went well: its next failure starts the back-off anew."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; it must be given back with `done`."""
        while True:
            self._promote()
            if self._ready:
                key = self._ready.popleft()
                self._dirty.discard(key)
                self._processing.add(key)
                return key
            await self._sleep_until_something()

    def done(self, key: K) -> None:
        """The work on a key ended; if it was added meanwhile it waits again."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.append(key)
            self._notify()

    def _notify(self) -> None:
        """Wakes all who wait: each looks for itself whether there is something for it."""
        self._wake.set()
        self._wake = anyio.Event()

    def _promote(self) -> None:
        now = self._clock.monotonic() + _SLACK_SECONDS
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            if self._later_at.get(key) == at:
                del self._later_at[key]
                self.add(key)

    async def _sleep_until_something(self) -> None:
        wake = self._wake
        if not self._later:
            await wake.wait()
            return

        async def timer(seconds: float) -> None:
            await self._clock.sleep(seconds)
            wake.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(timer, self._later[0][0] - self._clock.monotonic())
            await wake.wait()
            tasks.cancel_scope.cancel()
