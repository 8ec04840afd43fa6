"""The autoscaler's metrics, under upstream's names. Source: cluster-autoscaler 1.36, metrics."""

from __future__ import annotations

from collections import Counter as Counts

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from autoscaler.loop import Autoscaler
from autoscaler.options import GIB
from autoscaler.planning import quotas
from autoscaler.planning.observation import Observation
from autoscaler.planning.scale_up import ScaleUpResult
from autoscaler.result import SCALE_DOWN_IN_COOLDOWN, SCALE_DOWN_NOT_TRIED, LoopResult

_NAMESPACE = "cluster_autoscaler"
_FUNCTION_BUCKETS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Made once a process; `registry` is another one in tests."""

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
        self.backoff = gauge(
            "node_group_backoff_status", "Whether or not node group is backoff.", "node_group", "reason"
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
        self.pending_deletions = gauge("pending_node_deletions", "Node deletions that are under way.")
        self.errors = counter("errors_total", "The number of CA loops failed due to an error.", "type")
        self.scaled_up = counter("scaled_up_nodes_total", "Number of nodes added by CA.")
        self.failed_scale_ups = counter("failed_scale_ups_total", "Failed scale-ups.", "reason")
        self.scaled_down = counter("scaled_down_nodes_total", "Number of nodes removed by CA.", "reason")
        self.evicted = counter("evicted_pods_total", "Number of pods evicted by CA.", "eviction_result")
        self.unneeded = gauge("unneeded_nodes_count", "Number of nodes currently considered unneeded.")
        self.unremovable = gauge("unremovable_nodes_count", "Nodes that stay, by why.", "reason")
        self.in_cooldown = gauge("scale_down_in_cooldown", "Whether or not the scale down is in cooldown.")
        self.old_unregistered = counter(
            "old_unregistered_nodes_removed_count", "Number of unregistered nodes removed by CA."
        )
        self._reasons: set[str] = set()

    def deleted(self, node: str, group: str, drain: bool) -> None:
        """A node was given back."""
        self.scaled_down.labels("underutilized" if drain else "empty").inc()

    def evicted_pod(self, succeeded: bool) -> None:
        """A pod had to go."""
        self.evicted.labels("succeeded" if succeeded else "failed").inc()

    def after_loop(
        self, autoscaler: Autoscaler, result: LoopResult, observation: Observation, seconds: float
    ) -> None:
        """Everything that can be read off a finished loop."""
        options, state, view = autoscaler.options, autoscaler.state, autoscaler.view
        self.duration.labels("main").observe(seconds)
        self.last_activity.labels("main").set(result.at)
        self.safe.set(state.is_cluster_healthy())
        total = state.total
        for name, rows in (
            ("ready", total.ready),
            ("unready", total.unready),
            ("notStarted", total.not_started),
            ("longUnregistered", total.long_unregistered),
            ("unregistered", total.unregistered),
        ):
            self.nodes.labels(name).set(len(rows))
        self.groups.labels("autoscaled").set(len(view.groups))
        self.unschedulable.labels("unschedulable").set(result.unschedulable_pods)
        most = sum(group.max for group in view.groups.values())
        self.max_nodes.set(min(most, options.max_nodes_total) if options.max_nodes_total else most)
        used = quotas.total(observation.nodes, result.at)
        self.cores.set(used[quotas.CPU])
        self.memory.set(used[quotas.MEMORY])
        for direction in ("minimum", "maximum"):
            low = direction == "minimum"
            cores, memory = options.cores_total, options.memory_total
            self.core_limits.labels(direction).set(cores.min if low else cores.max)
            self.memory_limits.labels(direction).set((memory.min if low else memory.max) * GIB)
        self._groups(autoscaler, result.at)
        self.pending_deletions.set(len(autoscaler.actuator.deletions.names()))
        self.unneeded.set(len(autoscaler.planner.unneeded()))
        self._unremovable(autoscaler)
        self.in_cooldown.set(result.in_cooldown)
        if result.error:
            self.errors.labels(result.error_type).inc()
        if result.scale_up.result not in (ScaleUpResult.NOT_NEEDED, ScaleUpResult.NOT_TRIED):
            self.last_activity.labels("scaleUp").set(result.at)
        if result.scale_down not in (SCALE_DOWN_NOT_TRIED, SCALE_DOWN_IN_COOLDOWN):
            self.last_activity.labels("scaleDown").set(result.at)
        if result.scale_up.result is ScaleUpResult.SUCCESSFUL:
            self.scaled_up.inc(sum(order.delta for order in result.scale_up.orders))
        for _, reason in state.failed_scale_ups:
            self.failed_scale_ups.labels(reason).inc()
        state.failed_scale_ups.clear()
        self.old_unregistered.inc(sum(told.reason == "DeleteUnregistered" for told in result.events))

    def _groups(self, autoscaler: Autoscaler, now: float) -> None:
        for group in autoscaler.view.groups.values():
            self.group_min.labels(group.id).set(group.min)
            self.group_max.labels(group.id).set(group.max)
            self.group_target.labels(group.id).set(group.target)
            self.healthy.labels(group.id).set(autoscaler.state.is_group_healthy(group.id))
            failure = autoscaler.state.backoff.active(group.id, now)
            self.backoff.labels(group.id, failure.error_code if failure is not None else "").set(
                failure is not None
            )

    def _unremovable(self, autoscaler: Autoscaler) -> None:
        counts = Counts(str(why.reason) for why in autoscaler.planner.unremovable.reasons.values())
        self._reasons |= counts.keys()
        for reason in self._reasons:
            self.unremovable.labels(reason).set(counts[reason])
