"""The API server's metrics, under upstream's names; counted in plain numbers, made into metrics when read.

Source: kube-apiserver 1.36 (apiserver_request_total and so on).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from nominee.apiserver.flow_control.counts import Histogram

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from nominee.apiserver.cache.watch_cache import WatchCache
    from nominee.apiserver.flow_control.controller import FlowControl

# Seconds.
_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)
_LABELS = ("verb", "group", "version", "resource", "subresource")


class RequestLabels(NamedTuple):
    """The labels of request metrics, besides the response code."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str


class RequestMetrics:
    """Counts requests; cheap enough for every one of them."""

    def __init__(self) -> None:
        self._codes: dict[tuple[RequestLabels, int], int] = {}
        self._durations: dict[RequestLabels, Histogram] = {}
        # Watches that run now.
        self._watches: dict[RequestLabels, int] = {}

    def answered(self, labels: RequestLabels, code: int, seconds: float | None) -> None:
        """Count a request that ended with an HTTP code; `seconds` is None for a watch that had begun."""
        self._codes[labels, code] = self._codes.get((labels, code), 0) + 1
        if seconds is None:
            return
        durations = self._durations.get(labels)
        if durations is None:
            durations = self._durations[labels] = Histogram(_BUCKETS)
        durations.observe(seconds)

    def watching(self, labels: RequestLabels, change: int) -> None:
        """Count a watch that begins (1) or ends (-1)."""
        self._watches[labels] = self._watches.get(labels, 0) + change

    def collect(self) -> Iterator[Metric]:
        """Yield the request metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily(
            "apiserver_request_total", "Requests by verb, resource and code.", labels=[*_LABELS, "code"]
        )
        for (labels, code), count in self._codes.items():
            requests.add_metric([*labels, str(code)], count)
        yield requests
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "Time to the answer, without watches.", labels=_LABELS
        )
        for labels, one in self._durations.items():
            durations.add_metric(list(labels), one.rows(), one.total)
        yield durations
        watches = GaugeMetricFamily("apiserver_longrunning_requests", "Watches that run now.", labels=_LABELS)
        for labels, count in self._watches.items():
            watches.add_metric(list(labels), count)
        yield watches


class ServerCollector:
    """A collector for prometheus-client's registry: request metrics, and the contents of the watch cache."""

    def __init__(
        self, requests: RequestMetrics, cache: WatchCache, flow_control: FlowControl | None = None
    ) -> None:
        self._requests = requests
        self._cache = cache
        self._flow_control = flow_control

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of requests, flow control and the watch cache."""
        from prometheus_client.core import GaugeMetricFamily

        yield from self._requests.collect()
        if self._flow_control is not None:
            from nominee.apiserver.flow_control import metrics as flow_metrics

            yield from flow_metrics.collect(self._flow_control)
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects in storage by resource.", labels=["resource"]
        )
        for kind, count in self._cache.counts():
            objects.add_metric([kind.group_resource], count)
        yield objects
        revision = GaugeMetricFamily(
            "apiserver_watch_cache_resource_version", "The revision that the watch cache has reached."
        )
        revision.add_metric([], self._cache.revision)
        yield revision
