"""Keep histograms that cost little: labels are looked up once, observing is a bisection and two additions.

prometheus-client's own take a lock, a time stamp and several calls for each observation, too much for what
is observed a dozen times for every pod. Not for several threads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Series:
    """The observations of one set of labels; `bounds` are the buckets' upper ends, in seconds."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        """Observe `seconds`, `times` times."""
        self.counts[bisect_left(self._bounds, seconds)] += times
        self.total += seconds * times

    def buckets(self) -> list[tuple[str, float]]:
        """Return (upper end, observations up to it), as Prometheus expects them."""
        found, sum_so_far = [], 0
        for bound, count in zip((*self._bounds, float("inf")), self.counts, strict=True):
            sum_so_far += count
            text = floatToGoString(bound)  # type: ignore[no-untyped-call]
            found.append((text, float(sum_so_far)))
        return found


class Durations(Collector):
    """One histogram; `of` gives the series of label values, in the order of `labels`."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._buckets = tuple(buckets)
        self._series: dict[tuple[str, ...], Series] = {}
        registry.register(self)

    def of(self, *values: str) -> Series:
        """Return the series of these label values, created with the first call."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = Series(self._buckets)
        return series

    def describe(self) -> Iterable[Metric]:
        yield HistogramMetricFamily(self._name, self._text, labels=self._labels)

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for values, series in self._series.items():
            family.add_metric(values, series.buckets(), series.total)
        yield family
