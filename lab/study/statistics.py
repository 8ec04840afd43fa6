"""Summaries over seeds: mean, median, percentiles, spread."""

from __future__ import annotations

import statistics as standard
from collections.abc import Sequence
from dataclasses import dataclass

from nominee.lab.bench.figures import percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The distribution of one figure over the seeds."""

    count: int
    mean: float
    minimum: float
    median: float
    p90: float
    maximum: float

    @property
    def document(self) -> dict[str, float]:
        """Return the JSON document, with 3 digits after the point."""
        return {
            "count": self.count,
            "mean": round(self.mean, 3),
            "min": round(self.minimum, 3),
            "median": round(self.median, 3),
            "p90": round(self.p90, 3),
            "max": round(self.maximum, 3),
        }


def summarize(values: Sequence[float]) -> Summary | None:
    """Return the summary; None without values. p90 is the nearest rank."""
    if not values:
        return None
    return Summary(
        count=len(values),
        mean=standard.fmean(values),
        minimum=min(values),
        median=standard.median(values),
        p90=percentile(values, 90),
        maximum=max(values),
    )


def ratios(values: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """Return each value divided by the baseline of the same seed.

    Raises:
        ValueError: the two differ in length.
    """
    return [value / base for value, base in zip(values, baseline, strict=True) if base]
