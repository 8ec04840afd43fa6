"""Prometheus metrics of the autoscaler, under upstream's names. Source: cluster-autoscaler 1.36, metrics.

docs/design/005-autoscaler.md lists the metrics that are not exported.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Mapping

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, Summary

from nominee.autoscaler.options import GIB, Options
from nominee.autoscaler.planning.objects import quotas, readiness
from nominee.autoscaler.planning.objects.observation import Observation
from nominee.autoscaler.planning.objects.taints import taint_type
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core

_NAMESPACE = "cluster_autoscaler"
_FUNCTION_BUCKETS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_HETEROGENEITY_BUCKETS = (1, 2, 4, 8, 16, 32)
_ERRORS = (
    "cloudProviderError",
    "apiCallError",
    "internalError",
    "transientError",
    "configurationError",
    "nodeGroupDoesNotExistError",
    "unexpectedScaleDownStateError",
)
_FAILURES = ("cloudProviderError", "apiCallError", "timeout")
_REMOVALS = ("underutilized", "empty", "unready")
_LIMITS = {quotas.CPU: "CpuResourceLimit", quotas.MEMORY: "MemoryResourceLimit"}


class _Labelled:
    """A gauge whose values are set together; labels that are missing in an update are set to 0."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._seen: set[tuple[str, ...]] = set()

    def update(self, values: Mapping[tuple[str, ...], float]) -> None:
        """Set these values, by their labels."""
        self._seen |= values.keys()
        for labels in self._seen:
            self._gauge.labels(*labels).set(values.get(labels, 0))


class Metrics:
    """The metrics of a process. `registry` is another one in tests."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"{_NAMESPACE}_{name}", text, labels, registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"{_NAMESPACE}_{name}", text, labels, registry=registry)

        self.safe = gauge("cluster_safe_to_autoscale", "Whether or not cluster is healthy enough.")
        self.nodes = gauge("nodes_count", "Number of nodes in cluster.", "state")
        self.groups = gauge("node_groups_count", "Number of node groups managed by CA.", "node_group_type")
        self.unschedulable = gauge("unschedulable_pods_count", "Number of unschedulable pods.", "type")
        self.max_nodes = gauge("max_nodes_count", "Maximum number of nodes in all node groups.")
        self.cores = gauge("cluster_cpu_current_cores", "Current number of cores.")
        self.core_limits = gauge("cpu_limits_cores", "Minimum and maximum number of cores.", "direction")
        self.memory = gauge("cluster_memory_current_bytes", "Current number of bytes of memory.")
        self.memory_limits = gauge("memory_limits_bytes", "Minimum and maximum of memory.", "direction")
        self.group_min = gauge("node_group_min_count", "Minimum number of nodes.", "node_group")
        self.group_max = gauge("node_group_max_count", "Maximum number of nodes.", "node_group")
        self.group_target = gauge("node_group_target_count", "Target number of nodes.", "node_group")
        self.healthy = gauge("node_group_healthiness", "Whether or not node group is healthy.", "node_group")
        self.backoff = _Labelled(
            gauge(
                "node_group_backoff_status", "Whether or not node group is backoff.", "node_group", "reason"
            )
        )
        self.last_activity = gauge(
            "last_activity", "Last time certain part of CA logic executed.", "activity"
        )
        self.duration = Histogram(
            f"{_NAMESPACE}_function_duration_seconds",
            "Time taken by various parts of CA main loop.",
            ("function",),
            buckets=_FUNCTION_BUCKETS,
            registry=registry,
        )
        self.duration_quantiles = Summary(
            f"{_NAMESPACE}_function_duration_quantile_seconds",
            "Quantiles of time taken by various parts of CA main loop.",
            ("function",),
            registry=registry,
        )
        self.pending_deletions = gauge("pending_node_deletions", "Number of node deletions in progress.")
        self.errors = counter("errors_total", "The number of CA loops failed due to an error.", "type")
        self.scaled_up = counter("scaled_up_nodes_total", "Number of nodes added by CA.")
        self.failed_scale_ups = counter("failed_scale_ups_total", "Failed scale-ups.", "reason")
        self.failed_creations = counter(
            "failed_node_creations_total", "Number of nodes which failed to be added by CA.", "reason"
        )
        self.scaled_down = counter("scaled_down_nodes_total", "Number of nodes removed by CA.", "reason")
        self.evictions = counter("evicted_pods_total", "Number of pods evicted by CA.", "eviction_result")
        self.unneeded_nodes = gauge("unneeded_nodes_count", "Number of nodes currently considered unneeded.")
        self.unremovable = _Labelled(
            gauge("unremovable_nodes_count", "Number of nodes that cannot be removed.", "reason")
        )
        self.in_cooldown = gauge("scale_down_in_cooldown", "Whether or not the scale down is in cooldown.")
        self.taints = _Labelled(gauge("node_taints_count", "Number of taints per type.", "type"))
        self.heterogeneity = Histogram(
            f"{_NAMESPACE}_binpacking_heterogeneity",
            "Number of groups of equivalent pods in one binpacking simulation.",
            ("instance_type", "cpu_count", "namespace_count"),
            buckets=_HETEROGENEITY_BUCKETS,
            registry=registry,
        )
        # Counters whose names do not end in _total, which the client library would append to a Counter's.
        self.old_unregistered = gauge(
            "old_unregistered_nodes_removed_count", "Number of unregistered nodes removed by CA."
        )
        self.skips = gauge(
            "skipped_scale_events_count", "Scaling events that CA has chosen to skip.", "direction", "reason"
        )
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """Export all counters from the start, so that their first increase is visible."""
        for error in _ERRORS:
            self.errors.labels(error)
        for reason in _FAILURES:
            self.failed_scale_ups.labels(reason)
            self.failed_creations.labels(reason)
        for reason in _REMOVALS:
            self.scaled_down.labels(reason)
        for result in ("succeeded", "failed"):
            self.evictions.labels(result)
        for direction in ("up", "down"):
            for limit in _LIMITS.values():
                self.skips.labels(direction, limit)

    def scaled_down_node(self, node: core.Node, *, drain: bool) -> None:
        reason = "underutilized" if drain else "empty"
        self.scaled_down.labels(reason if readiness.is_ready(node) else "unready").inc()

    def evicted_pod(self, *, succeeded: bool) -> None:
        self.evictions.labels("succeeded" if succeeded else "failed").inc()

    def after_loop(
        self, state: AutoscalerState, result: LoopResult, observation: Observation, seconds: float
    ) -> None:
        """Update the metrics after a loop that took so many seconds."""
        for function, duration in [*result.durations, ("main", seconds)]:
            self.duration.labels(function).observe(duration)
            self.duration_quantiles.labels(function).observe(duration)
        for activity in result.activities:
            self.last_activity.labels(activity).set(int(result.at.now))
        self._cluster(state, result, observation)
        self._groups(state, result.at.monotonic)
        self._scale_up(state, result)
        self._scale_down(state, result)
        if result.error:
            self.errors.labels(result.error_type).inc()

    def _cluster(self, state: AutoscalerState, result: LoopResult, observation: Observation) -> None:
        total, empty = state.registry.total_readiness, bool(result.empty_cluster)
        self.safe.set(state.registry.is_cluster_healthy() and not empty)
        for name, rows in (
            ("ready", total.ready),
            ("unready", total.unready),
            ("notStarted", total.not_started),
            ("suspended", total.suspended),
            ("longUnregistered", total.long_unregistered),
            ("unregistered", total.unregistered),
        ):
            self.nodes.labels(name).set(0 if empty else len(rows))
        self.unschedulable.labels("unschedulable").set(result.unschedulable_pods)
        self.unschedulable.labels("scheduler_unprocessed").set(result.unprocessed_pods)
        used = quotas.total_resources(observation.nodes, result.at.now)
        self.cores.set(used[quotas.CPU])
        self.memory.set(used[quotas.MEMORY])
        self._limits(state.options)
        keys = (taint.key for node in observation.nodes for taint in node.spec.taints)
        self.taints.update(Counts((taint_type(key),) for key in keys))

    def _limits(self, options: Options) -> None:
        cores, memory = options.cores_total, options.memory_total
        for direction, cpu, gib in (
            ("minimum", cores.min, memory.min),
            ("maximum", cores.max, memory.max),
        ):
            self.core_limits.labels(direction).set(cpu)
            self.memory_limits.labels(direction).set(gib * GIB)

    def _groups(self, state: AutoscalerState, now: float) -> None:
        groups, total_max = state.view.groups.values(), state.options.max_nodes_total
        self.groups.labels("autoscaled").set(len(groups))
        self.groups.labels("autoprovisioned").set(0)
        nodes_max = sum(group.max for group in groups)
        self.max_nodes.set(min(nodes_max, total_max) if total_max else nodes_max)
        backoffs: dict[tuple[str, ...], float] = {}
        for group in groups:
            self.group_min.labels(group.id).set(group.min)
            self.group_max.labels(group.id).set(group.max)
            self.group_target.labels(group.id).set(group.target)
            self.healthy.labels(group.id).set(state.registry.is_node_group_healthy(group.id))
            backoff = state.registry.backoff.status(group.id, now)
            backoffs[group.id, backoff.error_code if backoff is not None else ""] = backoff is not None
        self.backoff.update(backoffs)

    def _scale_up(self, state: AutoscalerState, result: LoopResult) -> None:
        plan, failures = result.scale_up, state.registry.scale_ups.failures
        self.scaled_up.inc(sum(info.delta for info in plan.scale_ups))  # also before one that failed
        for reason, nodes in failures:
            self.failed_scale_ups.labels(reason).inc()
            self.failed_creations.labels(reason).inc(nodes)
        failures.clear()
        self._skip("up", plan.refused_by_quota)
        for row in plan.heterogeneity:
            labels = row.instance_type, row.cpu_count, row.namespace_count
            self.heterogeneity.labels(*labels).observe(row.pod_groups)
        self.old_unregistered.inc(sum(event.reason == "DeleteUnregistered" for event in result.events))

    def _scale_down(self, state: AutoscalerState, result: LoopResult) -> None:
        planner = state.planner
        self.pending_deletions.set(len(state.deletions.nodes()))
        self.unneeded_nodes.set(len(planner.unneeded_names()))
        self.unremovable.update(Counts((str(row.reason),) for row in planner.unremovable.reasons.values()))
        self.in_cooldown.set(result.in_cooldown)
        if "scaleDown" in result.activities:
            self._skip("down", planner.refused_by_quota)

    def _skip(self, direction: str, refused: Counts[str]) -> None:
        for resource, count in refused.items():
            self.skips.labels(direction, _LIMITS[resource]).inc(count)
