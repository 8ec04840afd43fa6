"""State of the cluster's node groups over time: readiness, scale-up requests, incorrect sizes. Pure.

Source: cluster-autoscaler 1.36, clusterstate. Times are seconds of `Clock.monotonic`, except in `updated_at`
and in time stamps of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.node_groups.scale_up_requests import (
    Occurrence,
    ScaleUpEvent,
    ScaleUpRequest,
    ScaleUpRequests,
)
from nominee.autoscaler.planning.objects import readiness, taints
from nominee.autoscaler.planning.objects.events import Events
from nominee.autoscaler.planning.objects.observation import DELETING, CloudView, Instance, NodeGroup
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Moment, from_time
from nominee.machinery.wire.values.scalars import format_duration

SCALE_DOWN_EXPECTED_SECONDS = 300.0
"""For so long a deleted node may still be registered."""
SOURCE_ERRORS_MAX = 3


@dataclass(slots=True)
class Readiness:
    """Names of nodes (and of instances that have not registered) by their state."""

    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    registered: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    long_unregistered: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AcceptableRange:
    """Numbers of ready nodes that a healthy group may have."""

    min: int
    max: int
    target: int


@dataclass(frozen=True, slots=True)
class IncorrectSize:
    """A number of registered nodes that differs from the target size, and when that was first observed."""

    current: int
    expected: int
    first_observed: float


_NO_RANGE = AcceptableRange(0, 0, 0)


class ClusterStateRegistry:
    """The state of all groups; updated at the beginning of each loop."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.scale_ups = ScaleUpRequests(options)
        self.backoff = self.scale_ups.backoff
        self.readiness: dict[str, Readiness] = {}
        self.total_readiness = Readiness()
        self.updated_at: float | None = None
        """In seconds since the epoch."""
        self.ranges: dict[str, AcceptableRange] = {}
        self.incorrect_sizes: dict[str, IncorrectSize] = {}
        self.unregistered: dict[str, float] = {}
        """When each instance without a node was first seen."""
        self._node_count = 0
        self._scale_downs: list[tuple[str, float]] = []
        """Group of each deleted node, and until when the node may still be registered."""
        self._errors_seen: dict[str, set[str]] = {}

    # Updates

    def update_nodes(self, nodes: Iterable[core.Node], view: CloudView, at: Moment, events: Events) -> None:
        """Begin a loop with these nodes and node groups; add events about failures."""
        all_nodes = list(nodes)
        self.updated_at, now = at.now, at.monotonic
        self._node_count = len(all_nodes)
        registered = {node.spec.providerID or node.metadata.name for node in all_nodes}
        unregistered = {
            instance.id
            for group in view.groups.values()
            for instance in group.instances
            if instance.id not in registered and instance.state != DELETING and not instance.error_code
        }
        self.unregistered = {name: self.unregistered.get(name, now) for name in sorted(unregistered)}
        self._update_readiness(all_nodes, view, at)
        self.recalculate(view)
        self._update_requests(now, events)
        self._handle_creation_errors(view, now, events)
        self.recalculate(view)
        self._update_incorrect_sizes(view, now)

    def _update_readiness(self, nodes: list[core.Node], view: CloudView, at: Moment) -> None:
        groups: dict[str, Readiness] = {}
        self.total_readiness = Readiness()
        for node in nodes:
            name = node.metadata.name
            group = view.group_of_node.get(name)
            counted = [self.total_readiness]
            if group is not None:
                counted.append(groups.setdefault(group, Readiness()))
            for row in counted:
                row.registered.append(name)
                self._add_node(row, node, at.now)
        for name, since in self.unregistered.items():
            group = view.group_of_node.get(name)
            if group is None:
                continue
            for row in (self.total_readiness, groups.setdefault(group, Readiness())):
                late = since + self._options.max_node_provision_time < at.monotonic
                (row.long_unregistered if late else row.unregistered).append(name)
        self.readiness = groups

    def _add_node(self, row: Readiness, node: core.Node, now: float) -> None:
        """Add a node to the list of its state; `now` in seconds since the epoch."""
        name = node.metadata.name
        # External providers do not report whether an instance still exists: as upstream, the taint decides.
        if taints.has_to_be_deleted(node):
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
        """Update the acceptable ranges after a change of target sizes."""
        self.ranges = {}
        for group in view.groups.values():
            late = len(self.readiness.get(group.id, Readiness()).long_unregistered)
            request = self.scale_ups.requests.get(group.id)
            requested = request.increase if request is not None else 0
            deleted = sum(name == group.id for name, _ in self._scale_downs)
            self.ranges[group.id] = AcceptableRange(
                group.target - late - requested, group.target + deleted, group.target
            )

    def _update_requests(self, now: float, events: Events) -> None:
        self.backoff.remove_stale(now)
        for group, request in list(self.scale_ups.requests.items()):
            if not self._has_upcoming(group):
                self.scale_ups.handle(group, Occurrence(event=ScaleUpEvent.FULFILLED, now=now))
            elif request.expected_by < now:
                self._time_out(group, request, now, events)
        self._scale_downs = [(group, until) for group, until in self._scale_downs if until > now]

    def _time_out(self, group: str, request: ScaleUpRequest, now: float, events: Events) -> None:
        waited = format_duration(round((now - request.requested_at) * 1e9))
        text = f"Nodes added to group {group} failed to register within {waited}"
        events.status("Warning", "ScaleUpTimedOut", text)
        what = Occurrence(
            event=ScaleUpEvent.TIMED_OUT,
            now=now,
            nodes=request.increase,
            error_code="timeout",
            error_message=f"Scale-up timed out for node group {group} after {waited}",
        )
        self.scale_ups.handle(group, what)

    def _handle_creation_errors(self, view: CloudView, now: float, events: Events) -> None:
        """Back off from groups whose instances could not be created, and reduce their scale-up requests.

        Only while the group is scaling up: an instance that failed before a restart was not requested by this
        process, and does not predict the result of the next request.
        """
        for group in view.groups.values():
            failed = {instance.id: instance for instance in group.instances if instance.creation_failed}
            seen = self._errors_seen.get(group.id, set())
            self._errors_seen[group.id] = set(failed)
            by_error: dict[str, list[Instance]] = {}
            for instance in failed.values():
                by_error.setdefault(instance.error, []).append(instance)
            for error, instances in sorted(by_error.items()):
                new = [instance for instance in instances if instance.id not in seen]
                if new and self.is_scaling_up(group.id):
                    self._fail_creation(group.id, error, new, _source_errors(instances), now, events)

    def _fail_creation(
        self, group: str, error: str, new: list[Instance], text: str, now: float, events: Events
    ) -> None:
        """Handle instances that could not be created; `text` has their error messages."""
        message = f"Failed adding {len(new)} nodes to group {group} due to {error}; source errors: {text}"
        events.status("Warning", "ScaleUpFailed", message)
        left = self.scale_ups.requests[group].increase - len(new)
        what = Occurrence(
            event=ScaleUpEvent.SOME_FAILED if left > 0 else ScaleUpEvent.ALL_FAILED,
            now=now,
            nodes=len(new),
            error_code=new[0].error_code,
            error_message=text,
        )
        self.scale_ups.handle(group, what)

    def _update_incorrect_sizes(self, view: CloudView, now: float) -> None:
        result: dict[str, IncorrectSize] = {}
        for group in view.groups.values():
            row = self.readiness.get(group.id)
            if row is None:
                continue
            unregistered = len(row.unregistered) + len(row.long_unregistered)
            current = len(row.registered)
            if group.target - unregistered <= current <= group.target:
                continue
            former = self.incorrect_sizes.get(group.id)
            same = former is not None and (former.current, former.expected) == (current, group.target)
            since = former.first_observed if former is not None and same else now
            result[group.id] = IncorrectSize(current, group.target, since)
        self.incorrect_sizes = result

    # Actions of the loop

    def register_scale_up(self, group: str, delta: int, now: float) -> None:
        """Record that the target size of a group was increased by `delta` nodes."""
        self.scale_ups.handle(group, Occurrence(event=ScaleUpEvent.INCREASED, now=now, nodes=delta))

    def register_failed_scale_up(self, group: str, delta: int, message: str, now: float) -> None:
        """Record that the provider refused to add `delta` nodes; `message` is its error."""
        what = Occurrence(
            event=ScaleUpEvent.REFUSED,
            now=now,
            nodes=delta,
            error_code="cloudProviderError",
            error_message=f"failed to increase node group size: {message}",
        )
        self.scale_ups.handle(group, what)

    def register_scale_down(self, group: str, now: float) -> None:
        """Record that the provider has deleted a node of a group."""
        self._scale_downs.append((group, now + SCALE_DOWN_EXPECTED_SECONDS))

    # Queries

    def is_cluster_healthy(self) -> bool:
        """Report whether not too many nodes are unready."""
        unready = len(self.total_readiness.unready)
        allowed = self._options.max_total_unready_percentage / 100 * self._node_count
        return not (unready > self._options.ok_total_unready_count and unready > allowed)

    def is_node_group_healthy(self, group: str) -> bool:
        """Report whether not too many nodes of a group are missing."""
        acceptable = self.ranges.get(group)
        if acceptable is None:
            return False
        row = self.readiness.get(group)
        if row is None:
            return acceptable.target == 0 or (acceptable.min == 0 and acceptable.target > 0)
        working = len(row.ready) + len(row.suspended)
        missing = max(acceptable.min - working, 0)
        total = working + len(row.unready) + len(row.not_started)
        allowed = self._options.max_total_unready_percentage / 100 * total
        return not (missing > self._options.ok_total_unready_count and missing > allowed)

    def _has_upcoming(self, group: str) -> bool:
        row = self.readiness.get(group, Readiness())
        provisioned = len(row.registered) - len(row.not_started)
        return self.ranges.get(group, _NO_RANGE).target > provisioned

    def is_scaling_up(self, group: str) -> bool:
        """Report whether nodes of the group were requested and are not ready yet."""
        return group in self.scale_ups.requests and self._has_upcoming(group)

    def upcoming_nodes(self, groups: Mapping[str, NodeGroup], now: float) -> tuple[dict[str, int], list[str]]:
        """Return how many nodes of each group are upcoming, and the registered nodes among them.

        Only requested nodes count, and only of groups that are not backed off.
        """
        counts: dict[str, int] = {}
        registered: list[str] = []
        for group in groups:
            row = self.readiness.get(group, Readiness())
            arrived = len(row.ready) + len(row.unready) + len(row.suspended) + len(row.long_unregistered)
            upcoming = self.ranges.get(group, _NO_RANGE).target - arrived
            if upcoming <= 0 or not self._expects_nodes(group, now):
                continue
            counts[group] = upcoming
            registered += row.not_started
        return counts, registered

    def _expects_nodes(self, group: str, now: float) -> bool:
        return group in self.scale_ups.requests and self.backoff.status(group, now) is None


def _source_errors(instances: Iterable[Instance]) -> str:
    """Join the different error messages; `...` after them if there are more than `SOURCE_ERRORS_MAX`."""
    messages = sorted({instance.error_message for instance in instances})
    return ", ".join([*messages, "..."] if len(messages) > SOURCE_ERRORS_MAX else messages)
