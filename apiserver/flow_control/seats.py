"""The seats that a request occupies.

Source: kube-apiserver 1.36, util/flowcontrol/request (list_work_estimator.go with SizeBasedListCostEstimate,
mutating_work_estimator.go: everything but lists takes one seat; lingering final seats are not implemented).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_BYTES_PER_SEAT = 100_000
_FROM_CACHE_BYTES_MAX = 1_000_000
"""A list from the watch cache is streamed: at most so much of it is in memory at once."""
SEATS_MAX = 100
_LEVEL_SHARE = 0.15
"""The largest share of its level's seats that one request takes."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The number of a kind's objects, and their mean size in bytes."""

    count: int
    bytes_each: int


def seats_max(nominal_limit: int) -> int:
    """Return the most seats of one request in a level with this nominal limit."""
    return min(max(math.ceil(nominal_limit * _LEVEL_SHARE), 1), SEATS_MAX)


def of_list(stored: Stored, *, limit: int, from_cache: bool, selects: bool, most: int) -> int:
    """Return the seats of a list of a kind, or of a watch that begins with one; `limit` 0 means no limit."""
    count = min(limit, stored.count) if limit > 0 else stored.count
    if selects and not from_cache:
        count = max(count, stored.count // 2)
    size = count * stored.bytes_each
    if from_cache:
        size = min(size, _FROM_CACHE_BYTES_MAX)
    return min(max(math.ceil(size / _BYTES_PER_SEAT), 1), most)
