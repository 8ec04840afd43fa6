"""Work on pods: at most one worker a pod, a bounded number at once, and no task for a pod that rests."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import anyio
import anyio.abc

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Runs `work(key)` for keys that were added; a key added while its work runs is worked on once more."""

    def __init__(self, work: Callable[[K], Awaitable[None]], *, workers_max: int) -> None:
        self._work = work
        self._workers_max = workers_max
        self._waiting: deque[K] = deque()
        self._queued: set[K] = set()
        self._busy: set[K] = set()
        self._again: set[K] = set()
        self._group: anyio.abc.TaskGroup | None = None
        self._workers = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def add(self, key: K) -> None:
        """From the loop; cheap, never waits."""
        if key in self._busy:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._waiting.append(key)
            self._grow()

    async def run(self) -> None:
        """Until cancelled. `work` must not raise."""
        async with anyio.create_task_group() as group:
            self._group = group
            for _ in range(min(len(self._waiting), self._workers_max)):
                self._grow()
            await anyio.sleep_forever()

    def _grow(self) -> None:
        if self._group is not None and self._workers < self._workers_max:
            self._workers += 1
            self._group.start_soon(self._worker)

    async def _worker(self) -> None:
        try:
            while self._waiting:
                key = self._waiting.popleft()
                self._queued.discard(key)
                self._busy.add(key)
                try:
                    await self._work(key)
                finally:
                    self._busy.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)
        finally:
            self._workers -= 1
