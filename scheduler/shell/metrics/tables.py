"""The scheduler's metrics, under upstream's names, as two tables.

`RECORDED` are recorded as things happen; `READ` are read from the queue, the cache and the frameworks when
they are asked for. A help text begins with the stability that upstream promises for the metric.
Source: kube-scheduler 1.36, metrics.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nominee.scheduler.shell.metrics.durations import Durations

SAMPLED_EVERY: Final = 10  # attempts: how often each plugin is timed (upstream: one in ten, by chance)
ATTEMPTS_LABEL_MAX: Final = 15

Recorder = Counter | Histogram | Durations
# By label values: a string for one label, a tuple for several or none.
Values = Mapping[Any, float]


def _growing(first: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(itertools.accumulate(itertools.repeat(factor, count - 1), operator.mul, initial=first))


def _doubling(first: float, count: int) -> tuple[float, ...]:
    return _growing(first, 2, count)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A metric that is recorded as events occur.

    `field` is the attribute of `Metrics`, or the name by which plugins record it (`plugin_metric`). Without
    buckets it is a counter; `cheap` histograms (`Durations`) are those observed many times for each pod.
    """

    field: str
    name: str
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    cheap: bool = False
    plugin_metric: bool = False

    def build(self, registry: CollectorRegistry) -> Recorder:
        """Return the metric, registered."""
        if not self.buckets:
            return Counter(self.name, self.text, self.labels, registry=registry)
        if self.cheap:
            return Durations(self.name, self.text, self.labels, self.buckets, registry)
        return Histogram(self.name, self.text, self.labels, buckets=self.buckets, registry=registry)


RECORDED: Final = (
    Recorded(
        "attempts",
        "scheduler_schedule_attempts",
        "[STABLE] Number of attempts to schedule pods, by the result.",
        ("result", "profile"),
    ),
    Recorded(
        "attempt_seconds",
        "scheduler_scheduling_attempt_duration_seconds",
        "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding).",
        ("result", "profile"),
        _doubling(0.001, 15),
    ),
    Recorded(
        "algorithm_seconds",
        "scheduler_scheduling_algorithm_duration_seconds",
        "[ALPHA] Scheduling algorithm latency in seconds.",
        buckets=_doubling(0.001, 15),
    ),
    Recorded(
        "sli_seconds",
        "scheduler_pod_scheduling_sli_duration_seconds",
        "[BETA] From when a pod is active for the first time until it is bound.",
        ("attempts",),
        _doubling(0.01, 20),
    ),
    Recorded(
        "pod_attempts",
        "scheduler_pod_scheduling_attempts",
        "[STABLE] Number of attempts to successfully schedule a pod.",
        buckets=(1, 2, 4, 8, 16),
    ),
    Recorded(
        "preemption_victims",
        "scheduler_preemption_victims",
        "[STABLE] Number of selected preemption victims.",
        buckets=_doubling(1, 7),
    ),
    Recorded(
        "extension_point_seconds",
        "scheduler_framework_extension_point_duration_seconds",
        "[STABLE] Latency for running all plugins of an extension point.",
        ("extension_point", "status", "profile"),
        _growing(0.0001, 2, 12),
        cheap=True,
    ),
    Recorded(
        "plugin_seconds",
        "scheduler_plugin_execution_duration_seconds",
        "[ALPHA] How long a plugin takes at an extension point, in a tenth of the attempts.",
        ("plugin", "extension_point", "status"),
        _growing(0.00001, 1.5, 20),
        cheap=True,
    ),
    Recorded(
        "hint_seconds",
        "scheduler_queueing_hint_execution_duration_seconds",
        "[ALPHA] How long the queueing hint of a plugin takes.",
        ("plugin", "event", "hint"),
        _growing(0.00001, 1.5, 20),
        cheap=True,
    ),
    Recorded(
        "event_seconds",
        "scheduler_event_handling_duration_seconds",
        "[ALPHA] How long the queue takes for an event.",
        ("event",),
        _growing(0.0001, 2, 12),
        cheap=True,
    ),
    Recorded(
        "permit_wait_seconds",
        "scheduler_permit_wait_duration_seconds",
        "[BETA] Duration of waiting on permit.",
        ("result",),
        _doubling(0.001, 15),
    ),
    Recorded(
        "scheduled_after_flush",
        "scheduler_pod_scheduled_after_flush",
        "[ALPHA] Pods scheduled after the flush of unschedulable pods, not after an event.",
    ),
    Recorded(
        "preemption_tasks",
        "scheduler_preemption_goroutines_execution",
        "[ALPHA] Number of preemption goroutines executed.",
        ("result",),
    ),
    Recorded(
        "preemption_task_seconds",
        "scheduler_preemption_goroutines_duration_seconds",
        "[ALPHA] Duration in seconds for running goroutines for the preemption.",
        ("result",),
        _doubling(0.01, 20),
    ),
    Recorded(
        "group_attempts",
        "scheduler_podgroup_schedule_attempts",
        "[ALPHA] Number of attempts to schedule pod groups, by the result.",
        ("result", "profile"),
    ),
    Recorded(
        "group_attempt_seconds",
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        "[ALPHA] Pod group scheduling attempt latency in seconds.",
        ("result", "profile"),
        _doubling(0.001, 15),
    ),
    Recorded(
        "group_algorithm_seconds",
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        "[ALPHA] Pod group scheduling algorithm latency in seconds.",
        buckets=_doubling(0.001, 15),
    ),
    Recorded(
        "resourceclaim_creates_total",
        "scheduler_resourceclaim_creates",
        "[ALPHA] Claims that the scheduler made for extended resources, by what came of it.",
        ("status",),
        plugin_metric=True,
    ),
    Recorded(
        "volume_scheduling_stage_error_total",
        "scheduler_volume_scheduling_stage_error",
        "[ALPHA] Failures to bind a pod's volumes, by stage.",
        ("operation",),
        plugin_metric=True,
    ),
    Recorded(
        "dra_bindingconditions_allocations_total",
        "scheduler_dra_bindingconditions_allocations",
        "[ALPHA] Devices with binding conditions that pods were to be bound with.",
        ("profile", "driver", "status"),
        plugin_metric=True,
    ),
    Recorded(
        "dra_bindingconditions_wait_duration_seconds",
        "scheduler_dra_bindingconditions_wait_duration_seconds",
        "[ALPHA] How long a pod waited for its devices' binding conditions.",
        ("profile", "driver", "status"),
        _doubling(0.1, 14),
        cheap=True,
        plugin_metric=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Read:
    """A metric whose values are read when it is scraped."""

    name: str
    text: str
    labels: tuple[str, ...] = ()
    counts: bool = False  # a counter, not a gauge

    def family(self, values: Values) -> Metric:
        """Return the metric with its present values."""
        make = CounterMetricFamily if self.counts else GaugeMetricFamily
        family = make(self.name, self.text, labels=list(self.labels))
        for labels, value in values.items():
            family.add_metric([labels] if isinstance(labels, str) else list(labels), value)
        return family


PENDING_PODS: Final = Read(
    "scheduler_pending_pods", "[STABLE] Number of pending pods, by the queue type.", ("queue",)
)
INCOMING_PODS: Final = Read(
    "scheduler_queue_incoming_pods",
    "[STABLE] Number of pods added to scheduling queues by event and queue type.",
    ("queue", "event"),
    counts=True,
)
CACHE_SIZE: Final = Read(
    "scheduler_cache_size",
    "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
    ("type",),
)
UNSCHEDULABLE_PODS: Final = Read(
    "scheduler_unschedulable_pods",
    "[BETA] The number of unschedulable pods broken down by plugin name.",
    ("plugin", "profile"),
)
IN_FLIGHT_EVENTS: Final = Read(
    "scheduler_inflight_events",
    "[ALPHA] Number of events currently tracked in the scheduling queue.",
    ("event",),
)
GOROUTINES: Final = Read(
    "scheduler_goroutines",
    "[BETA] Number of running goroutines split by the work they do such as binding.",
    ("operation",),
)
PLUGIN_EVALUATIONS: Final = Read(
    "scheduler_plugin_evaluation",
    "[BETA] Number of attempts to schedule pods by each plugin and the extension point.",
    ("plugin", "extension_point", "profile"),
    counts=True,
)
PREEMPTION_ATTEMPTS: Final = Read(
    "scheduler_preemption_attempts", "[STABLE] Number of attempts at preemption.", counts=True
)


class Metrics:
    """The metrics of one process; `registry` is another one in tests."""

    attempts: Counter
    attempt_seconds: Histogram
    algorithm_seconds: Histogram
    sli_seconds: Histogram
    pod_attempts: Histogram
    preemption_victims: Histogram
    extension_point_seconds: Durations
    plugin_seconds: Durations
    hint_seconds: Durations
    event_seconds: Durations
    permit_wait_seconds: Histogram
    scheduled_after_flush: Counter
    preemption_tasks: Counter
    preemption_task_seconds: Histogram
    group_attempts: Counter
    group_attempt_seconds: Histogram
    group_algorithm_seconds: Histogram

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self._of_plugins: dict[str, Recorder] = {}
        for row in RECORDED:
            if row.plugin_metric:
                self._of_plugins[row.field] = row.build(registry)
            else:
                setattr(self, row.field, row.build(registry))

    def note(self, metric: str, labels: tuple[str, ...], value: float) -> None:
        """Record a plugin's own metric; one that is not in the table is ignored."""
        found = self._of_plugins.get(metric)
        if isinstance(found, Durations):
            found.of(*labels).observe(value)
        elif isinstance(found, Counter):
            found.labels(*labels).inc(value)

    def group_decided(self, result: str, profile: str, seconds: float) -> None:
        """Record an attempt at a pod group that is over."""
        self.group_algorithm_seconds.observe(seconds)
        self.group_attempts.labels(result, profile).inc()
        self.group_attempt_seconds.labels(result, profile).observe(seconds)

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """Record an attempt that is over: `scheduled`, `unschedulable` or `error`."""
        self.attempts.labels(result, profile).inc()
        self.attempt_seconds.labels(result, profile).observe(seconds)

    def bound(self, attempts: int, seconds_since_first_active: float) -> None:
        """Record a pod that was bound."""
        label = f"{ATTEMPTS_LABEL_MAX}+" if attempts >= ATTEMPTS_LABEL_MAX else str(attempts)
        self.sli_seconds.labels(label).observe(seconds_since_first_active)
        self.pod_attempts.observe(attempts)

    def read(self, sources: Mapping[Read, Callable[[], Values]]) -> None:
        """Report these metrics with the values of their sources at the scrape."""
        self.registry.register(_Sources(sources))


@dataclass(frozen=True, slots=True, eq=False)
class _Sources(Collector):
    """Metrics that are read when they are asked for."""

    sources: Mapping[Read, Callable[[], Values]]

    def collect(self) -> Iterable[Metric]:
        for metric, source in self.sources.items():
            yield metric.family(source())
