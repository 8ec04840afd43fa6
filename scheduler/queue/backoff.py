"""Compute backoff times and keep the pods that are in backoff.

Source: kube-scheduler 1.36, backoff queue (KEP-5142: a pod may be popped before its backoff is over when
the active queue is empty). Times are seconds of the queue's clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff
from nominee.scheduler.framework.types import QueuedPodInfo
from nominee.scheduler.queue.keyed_heap import KeyedHeap

WINDOW_SECONDS: Final = (
    1.0  # ends of backoff are cut to it, so that pods of one window are ordered by priority
)


@dataclass(frozen=True, slots=True)
class Backoff(ExponentialBackoff):
    """Computes backoffs. `windowed`: ends are cut to whole seconds (SchedulerPopFromBackoffQ)."""

    initial_seconds: float = 1.0
    max_seconds: float = 10.0
    windowed: bool = True

    def aligned(self, seconds: float) -> float:
        """Return the start of the window that a moment lies in."""
        return math.floor(seconds / WINDOW_SECONDS) * WINDOW_SECONDS if self.windowed else seconds

    def expiry(self, info: QueuedPodInfo) -> float | None:
        """Return when the pod's backoff ends, or None; kept in the pod until its next failure."""
        count = info.consecutive_errors_count or info.unschedulable_count
        if count == 0:
            return None
        if info.backoff_expiration is None:
            info.backoff_expiration = self.aligned(info.timestamp + self.delay(count))
        return info.backoff_expiration

    def is_backing_off(self, info: QueuedPodInfo, now: float) -> bool:
        """Return whether the pod still waits; during the whole window in which its backoff ends, it does."""
        expiry = self.expiry(info)
        return expiry is not None and expiry >= self.aligned(now)


class BackoffQueue:
    """Pods in backoff: rejected ones, and apart from them those that failed with an error.

    Only the first may be popped early; trying again early after an error would add load to a failing server.
    """

    def __init__(self, backoff: Backoff, less_key: Callable[[QueuedPodInfo], Any]) -> None:
        self.backoff = backoff

        def by_window(info: QueuedPodInfo) -> Any:
            return (backoff.expiry(info) or 0.0, less_key(info))

        def by_expiry(info: QueuedPodInfo) -> float:
            return backoff.expiry(info) or 0.0

        self._rejected: KeyedHeap[ObjectKey, QueuedPodInfo] = KeyedHeap(
            by_window if backoff.windowed else by_expiry
        )
        self._errors: KeyedHeap[ObjectKey, QueuedPodInfo] = KeyedHeap(by_expiry)

    def __len__(self) -> int:
        return len(self._rejected) + len(self._errors)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._rejected or key in self._errors

    def add(self, info: QueuedPodInfo) -> None:
        """Add a pod: one without rejectors failed with an error and goes to the error backoff."""
        if info.unschedulable_plugins or info.pending_plugins:
            self._errors.remove(info.pod_info.key)
            self._rejected.put(info.pod_info.key, info)
        else:
            self._rejected.remove(info.pod_info.key)
            self._errors.put(info.pod_info.key, info)

    def get(self, key: ObjectKey) -> QueuedPodInfo | None:
        return self._rejected.get(key) or self._errors.get(key)

    def reorder(self, info: QueuedPodInfo) -> None:
        """Find the place of a pod that has changed."""
        (self._rejected if info.pod_info.key in self._rejected else self._errors).put(info.pod_info.key, info)

    def remove(self, key: ObjectKey) -> QueuedPodInfo | None:
        return self._rejected.remove(key) or self._errors.remove(key)

    def pop_early(self) -> QueuedPodInfo | None:
        """Remove and return the rejected pod whose backoff ends first, even if it is not over; or None."""
        return self._rejected.pop()

    def pop_completed(self, now: float) -> list[QueuedPodInfo]:
        """Remove and return all pods whose backoff is over."""
        completed: list[QueuedPodInfo] = []
        for heap in (self._rejected, self._errors):
            while (info := heap.peek()) is not None and not self.backoff.is_backing_off(info, now):
                heap.pop()
                completed.append(info)
        return completed

    def rejected(self) -> Iterator[QueuedPodInfo]:
        """Return the rejected pods in the order of popping."""
        return iter(self._rejected)

    def errors(self) -> Iterator[QueuedPodInfo]:
        """Return the pods that failed with an error, in the order in which their backoffs end."""
        return iter(self._errors)
