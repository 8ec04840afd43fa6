"""Time without the absences of all API servers: how long a process had the chance to see a write."""

from __future__ import annotations

from collections import deque
from typing import Final

from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE

ABSENT_SECONDS: Final = 12.0
"""No write for so long shows that no API server runs: a kubelet renews the lease of its node each 10 s."""
_ABSENCES_MAX: Final = 1_000
_WRITES_MAX: Final = 200
"""Enough for the writes of some seconds."""


class ServedTime:
    """Takes all writes in order.

    While no API server runs a process stays as stale as it was, for as long as that may take; the watches of
    one process come back one after another. So limits for stale caches leave these times out.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._has_leases = False
        self._absences: deque[tuple[float, float]] = deque(maxlen=_ABSENCES_MAX)
        self._writes: deque[float] = deque(maxlen=_WRITES_MAX)
        """The times of the last writes."""

    def observe(self, revision: Revision) -> None:
        """Note a write. Keys that etcd removes when their lease is over need no API server."""
        if revision.value is None:
            return
        self._has_leases = self._has_leases or revision.kind is LEASE
        if self._last is not None and revision.time - self._last > ABSENT_SECONDS:
            self._absences.append((self._last, revision.time))
        self._last = revision.time
        self._writes.append(revision.time)

    def between(self, start: float, end: float) -> float:
        """Return the seconds from one time to another one without the absences between.

        One that lasts until the end is shown by leases that nothing renews any more.
        """
        absences = [*self._absences]
        if self._has_leases and self._last is not None and end - self._last > ABSENT_SECONDS:
            absences.append((self._last, end))
        absent = (min(end, until) - max(start, since) for since, until in absences)
        return end - start - sum(each for each in absent if each > 0.0)

    def was_silent(self, start: float, end: float) -> bool:
        """Return whether nothing was written between two times, as by frozen servers; False if unknown."""
        is_known = len(self._writes) < _WRITES_MAX or self._writes[0] <= start
        return is_known and not any(start <= each < end for each in self._writes)
