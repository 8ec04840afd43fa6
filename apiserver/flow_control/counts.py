"""The counters of each flow schema at its level, as plain numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

SECONDS = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
LENGTHS = (0, 10, 25, 50, 100, 250, 500, 1000)
SEATS = (1, 2, 4, 10)


class Histogram:
    """Observations by upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def rows(self) -> list[tuple[str, float]]:
        """Return the observations up to each bound, as prometheus-client takes them."""
        bounds = [*map(str, self.bounds), "+Inf"]
        return list(zip(bounds, accumulate(map(float, self.counts)), strict=True))


class Counts:
    """The counters of one flow schema."""

    __slots__ = (
        "dispatched",
        "executing",
        "in_queue",
        "lengths",
        "ran",
        "refused",
        "seats",
        "seats_asked",
        "seats_in_queue",
        "waited",
        "waited_in_vain",
        "watched",
    )

    def __init__(self) -> None:
        self.dispatched = 0
        self.executing = 0
        self.seats = 0
        self.in_queue = 0
        self.seats_in_queue = 0
        # Rejections by reason: queue-full, concurrency-limit, time-out, cancelled.
        self.refused: dict[str, int] = {}
        self.waited = Histogram(SECONDS)
        self.waited_in_vain = Histogram(SECONDS)
        self.ran = Histogram(SECONDS)
        self.watched = Histogram(SECONDS)
        self.lengths = Histogram(LENGTHS)
        self.seats_asked = Histogram(SEATS)

    def refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1
