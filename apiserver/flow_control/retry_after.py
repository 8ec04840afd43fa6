"""The Retry-After of rejected requests: the more rejections, the longer.

Source: kube-apiserver 1.36, util/flowcontrol/dropped_requests_tracker.go.
"""

from __future__ import annotations

from collections import deque

SECONDS_MAX = 32


class RetryAfter:
    """A level's rejections by whole seconds.

    `seconds` doubles when there are many rejections and falls by one when there are few.
    """

    __slots__ = ("_changed", "_count", "_history", "_second", "seconds")

    def __init__(self) -> None:
        self.seconds = 1
        self._second = 0
        self._count = 0
        self._changed = 0
        self._history: deque[tuple[int, int]] = deque(maxlen=SECONDS_MAX)

    def refused(self, now: float) -> None:
        """Count a rejection at `now`, in seconds."""
        second = int(now)
        if second == self._second:
            self._count += 1
            return
        self._history.append((self._second, self._count))
        self._second, self._count = second, 1
        lately = sum(count for then, count in self._history if 0 < second - then <= self.seconds)
        if second - self._changed >= self.seconds and lately >= 3 * self.seconds:
            self.seconds = min(self.seconds * 2, SECONDS_MAX)
            self._changed = second
        elif lately < self.seconds and self.seconds > 1:
            self.seconds -= 1
