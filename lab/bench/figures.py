"""The arithmetic of a benchmark: samples, percentiles, histograms. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

PERCENTILES = (50, 90, 95, 99)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile, as scheduler_perf computes it.

    Raises:
        ValueError: there are no samples.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def per_second(times: Sequence[float], begin: float) -> list[float]:
    """Return how many times fall into each whole second after `begin`; times are in seconds.

    The last second is dropped unless it is whole, since fewer pods fit into a part of a second. A run of
    less than a second is one sample at its own rate.
    """
    if not times:
        return []
    length = max(times) - begin
    seconds = int(length)
    if seconds == 0:
        return [len(times) / length] if length > 0 else []
    counts = [0.0] * seconds
    for time in times:
        index = int(time - begin)
        if index < seconds:
            counts[index] += 1
    return counts


Histogram = dict[float, float]
"""Upper bound to the number of observations up to it."""


def histogram(metrics: str, name: str, labels: Mapping[str, str]) -> Histogram:
    """Return the buckets of a histogram in Prometheus text, summed over the series that have these labels."""
    buckets: Histogram = {}
    for each in _samples(metrics, f"{name}_bucket"):
        if labels.items() <= each.labels.items():
            bound = float(each.labels["le"])
            buckets[bound] = buckets.get(bound, 0.0) + each.value
    return buckets


def sample(metrics: str, name: str) -> float:
    """Return the value of a series without labels in Prometheus text; 0 if it is absent."""
    return next((each.value for each in _samples(metrics, name) if not each.labels), 0.0)


def _samples(metrics: str, name: str) -> Iterator[Sample]:
    families = text_string_to_metric_families(metrics)
    return (each for family in families for each in family.samples if each.name == name)


def difference(after: Histogram, before: Histogram) -> Histogram:
    """Return the observations between two readings of a histogram."""
    return {bound: count - before.get(bound, 0.0) for bound, count in after.items()}


def quantile(buckets: Histogram, percent: float) -> float | None:
    """Return the quantile by linear interpolation within its bucket, as Prometheus does.

    None without observations. A quantile in the last bucket, which has no upper bound, is that bucket's
    lower bound.
    """
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    rank = total * percent / 100
    lower, below = 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= rank:
            if math.isinf(bound):
                return lower
            inside = buckets[bound] - below
            return lower + (bound - lower) * ((rank - below) / inside if inside else 0.0)
        lower, below = bound, buckets[bound]
    return lower


def rounded(value: float | None, digits: int = 3) -> float | None:
    """Return a number rounded for a report; None stays None."""
    return None if value is None else round(value, digits)
