"""What is known of node groups over time: who is ready, what was ordered, who failed. Pure.

Source: cluster-autoscaler 1.36, clusterstate. Times in seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from autoscaler.options import Options
from autoscaler.planning import readiness, taints
from autoscaler.planning.backoff import Backoff
from autoscaler.planning.events import Events
from autoscaler.planning.observation import DELETING, CloudView, Instance, NodeGroup
from machinery.api.pb import core
from machinery.runtime.clock import from_time
from machinery.wire.scalars import format_duration

DELETION_SECONDS_MAX = 300.0
SOURCE_ERRORS_MAX = 3


@dataclass(slots=True)
class Readiness:
    """Names of nodes (and of instances that are no nodes yet), by how they are."""

    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    registered: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    long_unregistered: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScaleUpRequest:
    """An order that is not fulfilled yet."""

    increase: int
    at: float
    expected: float


@dataclass(frozen=True, slots=True)
class AcceptableRange:
    """How many ready nodes a group may have without anything being wrong."""

    min: int
    max: int
    target: int


@dataclass(frozen=True, slots=True)
class IncorrectSize:
    """Fewer or more nodes than there should be, since when."""

    current: int
    expected: int
    since: float


_NOTHING = AcceptableRange(0, 0, 0)


class ClusterState:
    """Brought up to date at the beginning of each loop."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.backoff = Backoff(options)
        self.requests: dict[str, ScaleUpRequest] = {}
        self.readiness: dict[str, Readiness] = {}
        self.total = Readiness()
        self.updated_at: float | None = None
        self.ranges: dict[str, AcceptableRange] = {}
        self.incorrect: dict[str, IncorrectSize] = {}
        self.unregistered: dict[str, float] = {}
        """Since when an instance is known that is no node."""
        self.failed_scale_ups: list[tuple[str, int]] = []
        """Reason and number of nodes, for the metrics, which clear the list."""
        self._timed_out: list[tuple[str, int]] = []
        self._node_count = 0
        self._deletions: list[tuple[str, float]] = []
        self._errors_seen: dict[str, set[str]] = {}

    # Bringing up to date

    def update(self, nodes: Iterable[core.Node], view: CloudView, now: float, events: Events) -> None:
        """A new loop: what the API server and the provider say now."""
        found = list(nodes)
        self.updated_at = now
        self._node_count = len(found)
        registered = {node.spec.providerID or node.metadata.name for node in found}
        waiting = {
            instance.id
            for group in view.groups.values()
            for instance in group.instances
            if instance.id not in registered and instance.state != DELETING and not instance.error_code
        }
        self.unregistered = {name: self.unregistered.get(name, now) for name in sorted(waiting)}
        self._update_readiness(found, view, now)
        self.recalculate(view)
        self._update_requests(now, events)
        self._handle_creation_errors(view, now, events)
        self.recalculate(view)
        self._update_incorrect_sizes(view, now)

    def _update_readiness(self, nodes: list[core.Node], view: CloudView, now: float) -> None:
        groups: dict[str, Readiness] = {}
        self.total = Readiness()
        for node in nodes:
            name = node.metadata.name
            group = view.group_of_node.get(name)
            rows = [self.total] if group is None else [self.total, groups.setdefault(group, Readiness())]
            for row in rows:
                row.registered.append(name)
                self._sort_in(row, node, now)
        for name, since in self.unregistered.items():
            group = view.group_of_node.get(name)
            if group is None:
                continue
            for row in (self.total, groups.setdefault(group, Readiness())):
                late = since + self._options.max_node_provision_time < now
                (row.long_unregistered if late else row.unregistered).append(name)
        self.readiness = groups

    def _sort_in(self, row: Readiness, node: core.Node, now: float) -> None:
        name = node.metadata.name
        # The provider does not report whether it still has a machine: the taint stands for it, as upstream.
        if taints.taint_time(node, taints.TO_BE_DELETED) is not None:
            row.deleted.append(name)
        elif readiness.is_suspended(node):
            row.suspended.append(name)
        elif readiness.is_ready(node):
            row.ready.append(name)
        elif from_time(node.metadata.creationTimestamp) + self._options.max_node_startup_time > now:
            row.not_started.append(name)
        else:
            row.unready.append(name)

    def recalculate(self, view: CloudView) -> None:
        """Targets have changed: so has what is acceptable."""
        self.ranges = {}
        for group in view.groups.values():
            late = len(self.readiness.get(group.id, Readiness()).long_unregistered)
            request = self.requests.get(group.id)
            ordered = request.increase if request is not None else 0
            leaving = sum(name == group.id for name, _ in self._deletions)
            self.ranges[group.id] = AcceptableRange(
                group.target - late - ordered, group.target + leaving, group.target
            )

    def _update_requests(self, now: float, events: Events) -> None:
        self.backoff.remove_stale(now)
        for group, request in list(self.requests.items()):
            if not self._has_upcoming(group):
                del self.requests[group]
            elif request.expected < now:
                waited = format_duration(round((now - request.at) * 1e9))
                events.status(
                    "Warning",
                    "ScaleUpTimedOut",
                    f"Nodes added to group {group} failed to register within {waited}",
                )
                text = f"Scale-up timed out for node group {group} after {waited}"
                self._fail(group, request.increase, "timeout", text, now)
                self._timed_out.append((group, request.increase))
                del self.requests[group]
        self._deletions = [(group, until) for group, until in self._deletions if until > now]

    def _handle_creation_errors(self, view: CloudView, now: float, events: Events) -> None:
        """Back off from groups whose machines could not be created, and reduce their scale-up requests.

        Only while the group is scaling up: a machine that failed before a restart was not ordered by this
        process, and says nothing about the next order.
        """
        for group in view.groups.values():
            failed = {instance.id: instance for instance in group.instances if instance.failed}
            seen = self._errors_seen.get(group.id, set())
            self._errors_seen[group.id] = set(failed)
            by_error: dict[str, list[Instance]] = {}
            for instance in failed.values():
                by_error.setdefault(instance.error, []).append(instance)
            for error, instances in sorted(by_error.items()):
                new = [instance for instance in instances if instance.id not in seen]
                if new and self.is_scaling_up(group.id):
                    text = _source_errors(instances)
                    events.status(
                        "Warning",
                        "ScaleUpFailed",
                        f"Failed adding {len(new)} nodes to group {group.id} due to {error}; "
                        f"source errors: {text}",
                    )
                    self.register_increase(group.id, -len(new), now)
                    self._fail(group.id, len(new), new[0].error_code, text, now)

    def _update_incorrect_sizes(self, view: CloudView, now: float) -> None:
        result: dict[str, IncorrectSize] = {}
        for group in view.groups.values():
            row = self.readiness.get(group.id)
            if row is None:
                continue
            waiting = len(row.unregistered) + len(row.long_unregistered)
            current = len(row.registered)
            if group.target - waiting <= current <= group.target:
                continue
            former = self.incorrect.get(group.id)
            same = former is not None and (former.current, former.expected) == (current, group.target)
            since = former.since if former is not None and same else now
            result[group.id] = IncorrectSize(current, group.target, since)
        self.incorrect = result

    # What the loop does

    def register_increase(self, group: str, delta: int, now: float) -> None:
        """An order was placed (or, negative, taken back)."""
        former = self.requests.get(group)
        expected = now + self._options.max_node_provision_time
        if former is None:
            if delta > 0:
                self.requests[group] = ScaleUpRequest(delta, now, expected)
            return
        increase = former.increase + delta
        if increase <= 0:
            del self.requests[group]
        elif delta > 0:
            self.requests[group] = ScaleUpRequest(increase, now, expected)
        else:
            self.requests[group] = replace(former, increase=increase)

    def take_timed_out(self) -> list[tuple[str, int]]:
        """Orders (group, nodes) that were given up since the last call."""
        taken, self._timed_out = self._timed_out, []
        return taken

    def register_failed_increase(self, group: str, delta: int, message: str, now: float) -> None:
        """Record that the provider refused an order; `message` is its error."""
        text = f"failed to increase node group size: {message}"
        self._fail(group, delta, "cloudProviderError", text, now)

    def register_deletion(self, group: str, now: float) -> None:
        """A machine was given back."""
        self._deletions.append((group, now + DELETION_SECONDS_MAX))

    def _fail(self, group: str, nodes: int, code: str, message: str, now: float) -> None:
        self.failed_scale_ups.append((code, nodes))
        self.backoff.add(group, now, code=code, message=message)

    # Looking

    def is_cluster_healthy(self) -> bool:
        unready = len(self.total.unready)
        share = self._options.max_total_unready_percentage / 100 * self._node_count
        return not (unready > self._options.ok_total_unready_count and unready > share)

    def is_group_healthy(self, group: str) -> bool:
        acceptable = self.ranges.get(group)
        if acceptable is None:
            return False
        row = self.readiness.get(group)
        if row is None:
            return acceptable.target == 0 or (acceptable.min == 0 and acceptable.target > 0)
        working = len(row.ready) + len(row.suspended)
        missing = max(acceptable.min - working, 0)
        known = working + len(row.unready) + len(row.not_started)
        share = self._options.max_total_unready_percentage / 100 * known
        return not (missing > self._options.ok_total_unready_count and missing > share)

    def _has_upcoming(self, group: str) -> bool:
        row = self.readiness.get(group, Readiness())
        provisioned = len(row.registered) - len(row.not_started)
        return self.ranges.get(group, _NOTHING).target > provisioned

    def is_scaling_up(self, group: str) -> bool:
        return group in self.requests and self._has_upcoming(group)

    def upcoming(self, groups: Mapping[str, NodeGroup], now: float) -> tuple[dict[str, int], list[str]]:
        """How many nodes of each group are on their way, and which registered nodes are among them.

        Only what was ordered counts, and not of a group that has just failed.
        """
        counts: dict[str, int] = {}
        registered: list[str] = []
        for group in groups:
            row = self.readiness.get(group, Readiness())
            there = len(row.ready) + len(row.unready) + len(row.suspended) + len(row.long_unregistered)
            coming = self.ranges.get(group, _NOTHING).target - there
            if coming <= 0 or not self._expects(group, now):
                continue
            counts[group] = coming
            registered += row.not_started
        return counts, registered

    def _expects(self, group: str, now: float) -> bool:
        return group in self.requests and self.backoff.active(group, now) is None


def _source_errors(instances: Iterable[Instance]) -> str:
    """Join the different error messages; more than three are marked as an excerpt, as upstream."""
    messages = sorted({instance.error_message for instance in instances})
    return ", ".join([*messages, "..."] if len(messages) > SOURCE_ERRORS_MAX else messages)
