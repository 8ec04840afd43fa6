"""Unneeded nodes, since when they are unneeded, and which of them may be deleted now. Pure.

Source: cluster-autoscaler 1.36, core/scaledown/unneeded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.objects import readiness
from nominee.autoscaler.planning.objects.quotas import MinQuota
from nominee.autoscaler.planning.scale_down.eligibility import has_scale_down_disabled
from nominee.autoscaler.planning.scale_down.scale_down_input import NodeToBeRemoved, ScaleDownInput
from nominee.autoscaler.planning.scale_down.unremovable import Reason, Unremovable, UnremovableNodes


@dataclass(frozen=True, slots=True)
class _Unneeded:
    removal: NodeToBeRemoved
    since: float


class UnneededNodes:
    """Keep since when (seconds of `Clock.monotonic`) each node is unneeded without interruption."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._nodes: dict[str, _Unneeded] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def names(self) -> list[str]:
        return sorted(self._nodes)

    def durations(self, now: float) -> dict[str, float]:
        """Return for how many seconds each node is unneeded."""
        return {name: now - each.since for name, each in sorted(self._nodes.items())}

    def left_seconds(self, now: float) -> dict[str, float]:
        """Return for how many more seconds each node must be unneeded before it may be deleted."""
        return {name: max(self._end(each) - now, 0.0) for name, each in sorted(self._nodes.items())}

    def update(self, removals: Iterable[NodeToBeRemoved], now: float) -> None:
        """Replace the nodes by these; nodes that were unneeded before keep their time."""
        nodes = {}
        for removal in removals:
            name = removal.node.metadata.name
            former = self._nodes.get(name)
            nodes[name] = _Unneeded(removal, former.since if former is not None else now)
        self._nodes = nodes

    def clear(self) -> None:
        """Drop all nodes: if they are unneeded again later, their time starts again."""
        self._nodes = {}

    def removable_at(
        self, inputs: ScaleDownInput, unremovable: UnremovableNodes
    ) -> tuple[list[NodeToBeRemoved], list[NodeToBeRemoved], Counter[str]]:
        """Return the empty nodes and the nodes to drain that may be deleted now, longest unneeded first.

        Risky drains come last. The third value counts by resource the nodes that a lower limit of the cluster
        keeps. The reasons of nodes that may not be deleted are added to `unremovable`.
        """
        sizes = {group.id: group.target for group in inputs.view.groups.values()}
        quota = MinQuota(self._options, inputs.snapshot.nodes(), inputs.at.now)
        empty: list[NodeToBeRemoved] = []
        drain: list[NodeToBeRemoved] = []
        by_time = sorted(self._nodes.items(), key=lambda item: (item[1].since, item[0]))
        for has_pods, result in ((False, empty), (True, drain)):
            for name, entry in by_time:
                if bool(entry.removal.pods_to_reschedule) is not has_pods:
                    continue
                reason = self._reason(inputs, entry, sizes, quota)
                if reason is not None:
                    unremovable.add(name, Unremovable(reason))
                else:
                    result.append(entry.removal)
        drain.sort(key=lambda removal: removal.is_risky)
        return empty, drain, quota.refusals

    def _end(self, entry: _Unneeded) -> float:
        """Return when a node has been unneeded for long enough."""
        options, is_ready = self._options, readiness.is_ready(entry.removal.node)
        return entry.since + (
            options.scale_down_unneeded_time if is_ready else options.scale_down_unready_time
        )

    def _reason(
        self, inputs: ScaleDownInput, entry: _Unneeded, sizes: dict[str, int], quota: MinQuota
    ) -> Reason | None:
        """Return why a node may not be deleted now; otherwise subtract it from its group and the quota."""
        node = entry.removal.node
        group = inputs.view.group(node.metadata.name)
        if has_scale_down_disabled(node):
            return Reason.SCALE_DOWN_DISABLED
        if group is None:
            return Reason.NOT_AUTOSCALED
        if not self._end(entry) < inputs.at.monotonic:
            is_ready = readiness.is_ready(node)
            return Reason.NOT_UNNEEDED_LONG_ENOUGH if is_ready else Reason.NOT_UNREADY_LONG_ENOUGH
        if sizes[group.id] - inputs.deletions.count(group.id) <= group.min:
            return Reason.MIN_SIZE_REACHED
        if not quota.take(node):
            return Reason.MINIMAL_RESOURCE_LIMIT_EXCEEDED
        sizes[group.id] -= 1
        return Reason.BLOCKED_BY_ON_COMPLETION_POD if entry.removal.on_completion else None
