"""The scheduler's metrics, under upstream's names.

Counters of the queue and sizes are read when somebody asks; only durations are recorded as they happen. A
help text begins with the stability that upstream promises for the metric.
Source: kube-scheduler 1.36, metrics.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scheduler.shell.durations import Durations

SAMPLED_EVERY: Final = 10  # attempts: how often each plugin is timed (upstream: one in ten, by chance)
ATTEMPTS_LABEL_MAX: Final = 15


def _growing(first: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(itertools.accumulate(itertools.repeat(factor, count - 1), operator.mul, initial=first))


def _doubling(first: float, count: int) -> tuple[float, ...]:
    return _growing(first, 2, count)


class Metrics:
    """Made once a process; `registry` is another one in tests."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self.attempts = Counter(
            "scheduler_schedule_attempts",
            "[STABLE] Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
            registry=registry,
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding).",
            ("result", "profile"),
            buckets=_doubling(0.001, 15),
            registry=registry,
        )
        self.algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "[ALPHA] Scheduling algorithm latency in seconds.",
            buckets=_doubling(0.001, 15),
            registry=registry,
        )
        self.sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "[BETA] From when a pod is active for the first time until it is bound.",
            ("attempts",),
            buckets=_doubling(0.01, 20),
            registry=registry,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "[STABLE] Number of attempts to successfully schedule a pod.",
            buckets=(1, 2, 4, 8, 16),
            registry=registry,
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "[STABLE] Number of selected preemption victims.",
            buckets=_doubling(1, 7),
            registry=registry,
        )
        self.extension_point_seconds = Durations(
            "scheduler_framework_extension_point_duration_seconds",
            "[STABLE] Latency for running all plugins of an extension point.",
            ("extension_point", "status", "profile"),
            _growing(0.0001, 2, 12),
            registry,
        )
        self.plugin_seconds = Durations(
            "scheduler_plugin_execution_duration_seconds",
            "[ALPHA] How long a plugin takes at an extension point, in a tenth of the attempts.",
            ("plugin", "extension_point", "status"),
            _growing(0.00001, 1.5, 20),
            registry,
        )
        self.hint_seconds = Durations(
            "scheduler_queueing_hint_execution_duration_seconds",
            "[ALPHA] How long the queueing hint of a plugin takes.",
            ("plugin", "event", "hint"),
            _growing(0.00001, 1.5, 20),
            registry,
        )
        self.event_seconds = Durations(
            "scheduler_event_handling_duration_seconds",
            "[ALPHA] How long the queue takes for an event.",
            ("event",),
            _growing(0.0001, 2, 12),
            registry,
        )
        self.permit_wait_seconds = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "[BETA] Duration of waiting on permit.",
            ("result",),
            buckets=_doubling(0.001, 15),
            registry=registry,
        )
        self.scheduled_after_flush = Counter(
            "scheduler_pod_scheduled_after_flush",
            "[ALPHA] Pods scheduled after the flush of unschedulable pods, not after an event.",
            registry=registry,
        )
        self.preemption_tasks = Counter(
            "scheduler_preemption_goroutines_execution",
            "[ALPHA] Number of preemption goroutines executed.",
            ("result",),
            registry=registry,
        )
        self.preemption_task_seconds = Histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "[ALPHA] Duration in seconds for running goroutines for the preemption.",
            ("result",),
            buckets=_doubling(0.01, 20),
            registry=registry,
        )
        self.group_attempts = Counter(
            "scheduler_podgroup_schedule_attempts",
            "[ALPHA] Number of attempts to schedule pod groups, by the result.",
            ("result", "profile"),
            registry=registry,
        )
        self.group_attempt_seconds = Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "[ALPHA] Pod group scheduling attempt latency in seconds.",
            ("result", "profile"),
            buckets=_doubling(0.001, 15),
            registry=registry,
        )
        self.group_algorithm_seconds = Histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "[ALPHA] Pod group scheduling algorithm latency in seconds.",
            buckets=_doubling(0.001, 15),
            registry=registry,
        )

        # By the names under which plugins note them.
        self._noted: dict[str, Counter | Durations] = {
            "resourceclaim_creates_total": Counter(
                "scheduler_resourceclaim_creates",
                "[ALPHA] Claims that the scheduler made for extended resources, by what came of it.",
                ("status",),
                registry=registry,
            ),
            "volume_scheduling_stage_error_total": Counter(
                "scheduler_volume_scheduling_stage_error",
                "[ALPHA] Failures to bind a pod's volumes, by stage.",
                ("operation",),
                registry=registry,
            ),
            "dra_bindingconditions_allocations_total": Counter(
                "scheduler_dra_bindingconditions_allocations",
                "[ALPHA] Devices with binding conditions that pods were to be bound with.",
                ("profile", "driver", "status"),
                registry=registry,
            ),
            "dra_bindingconditions_wait_duration_seconds": Durations(
                "scheduler_dra_bindingconditions_wait_duration_seconds",
                "[ALPHA] How long a pod waited for its devices' binding conditions.",
                ("profile", "driver", "status"),
                _doubling(0.1, 14),
                registry,
            ),
        }

    def note(self, metric: str, labels: tuple[str, ...], value: float) -> None:
        """What a plugin notes; nothing for a metric that is not known."""
        found = self._noted.get(metric)
        if isinstance(found, Durations):
            found.of(*labels).observe(value)
        elif found is not None:
            found.labels(*labels).inc(value)

    def group_decided(self, result: str, profile: str, seconds: float) -> None:
        """One attempt at a pod group is over."""
        self.group_algorithm_seconds.observe(seconds)
        self.group_attempts.labels(result, profile).inc()
        self.group_attempt_seconds.labels(result, profile).observe(seconds)

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """One attempt is over: `scheduled`, `unschedulable` or `error`."""
        self.attempts.labels(result, profile).inc()
        self.attempt_seconds.labels(result, profile).observe(seconds)

    def bound(self, attempts: int, seconds_since_first_active: float) -> None:
        """A pod has got its node."""
        label = f"{ATTEMPTS_LABEL_MAX}+" if attempts >= ATTEMPTS_LABEL_MAX else str(attempts)
        self.sli_seconds.labels(label).observe(seconds_since_first_active)
        self.pod_attempts.observe(attempts)

    def watch(
        self,
        *,
        pending: Callable[[], Mapping[str, int]],
        incoming: Callable[[], Mapping[tuple[str, str], int]],
        cached: Callable[[], Mapping[str, int]],
        refused: Callable[[], Mapping[tuple[str, str], int]],
        in_flight_events: Callable[[], Mapping[str, int]],
        tasks: Callable[[], Mapping[str, int]],
        evaluations: Callable[[], Mapping[tuple[str, str, str], int]],
        preemptions: Callable[[], int],
    ) -> None:
        """Report sizes when asked.

        Pods by queue, pods by (queue, event), cached things by type, unschedulable pods by (plugin, profile),
        kept events by name, running tasks by operation, attempts by (plugin, point, profile), and attempts at
        preemption.
        """

        class Sizes(Collector):
            def collect(self) -> Iterable[Metric]:
                pods = GaugeMetricFamily(
                    "scheduler_pending_pods",
                    "[STABLE] Number of pending pods, by the queue type.",
                    labels=["queue"],
                )
                for queue, count in pending().items():
                    pods.add_metric([queue], count)
                yield pods
                came = CounterMetricFamily(
                    "scheduler_queue_incoming_pods",
                    "[STABLE] Number of pods added to scheduling queues by event and queue type.",
                    labels=["queue", "event"],
                )
                for (queue, event), count in incoming().items():
                    came.add_metric([queue, event], count)
                yield came
                sizes = GaugeMetricFamily(
                    "scheduler_cache_size",
                    "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
                    labels=["type"],
                )
                for kind, count in cached().items():
                    sizes.add_metric([kind], count)
                yield sizes
                reasons = GaugeMetricFamily(
                    "scheduler_unschedulable_pods",
                    "[BETA] The number of unschedulable pods broken down by plugin name.",
                    labels=["plugin", "profile"],
                )
                for (plugin, profile), count in refused().items():
                    reasons.add_metric([plugin, profile], count)
                yield reasons
                kept = GaugeMetricFamily(
                    "scheduler_inflight_events",
                    "[ALPHA] Number of events currently tracked in the scheduling queue.",
                    labels=["event"],
                )
                for event, count in in_flight_events().items():
                    kept.add_metric([event], count)
                yield kept
                running = GaugeMetricFamily(
                    "scheduler_goroutines",
                    "[BETA] Number of running goroutines split by the work they do such as binding.",
                    labels=["operation"],
                )
                for operation, count in tasks().items():
                    running.add_metric([operation], count)
                yield running
                asked = CounterMetricFamily(
                    "scheduler_plugin_evaluation",
                    "[BETA] Number of attempts to schedule pods by each plugin and the extension point.",
                    labels=["plugin", "extension_point", "profile"],
                )
                for labels, count in evaluations().items():
                    asked.add_metric(list(labels), count)
                yield asked
                tried = CounterMetricFamily(
                    "scheduler_preemption_attempts", "[STABLE] Number of attempts at preemption."
                )
                tried.add_metric([], preemptions())
                yield tried

        self.registry.register(Sizes())
