"""Which nodes are not needed, since when, and which of them may go now. Pure.

Source: cluster-autoscaler 1.36, scale-down planner, eligibility and removal simulation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from autoscaler.options import Options
from autoscaler.planning import annotation_keys, readiness, taints
from autoscaler.planning.budgets import RemainingBudgets
from autoscaler.planning.deletions import Deletions
from autoscaler.planning.device_utilization import device_utilization
from autoscaler.planning.drainability import BlockingReason, Rules, moves
from autoscaler.planning.observation import CloudView, Observation
from autoscaler.planning.quotas import MinQuota
from autoscaler.planning.snapshot import ClusterSnapshot, Hints
from autoscaler.planning.unremovable import Reason, Unremovable, UnremovableNodes
from autoscaler.planning.utilization import Utilization, utilization
from machinery.api.pb import core
from scheduler.framework.types import NodeInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A node that may go. `risky`: budgets do not allow all its pods to go at once."""

    node: core.Node
    utilization: Utilization
    move: tuple[core.Pod, ...]
    risky: bool = False
    waits: bool = False
    """A pod of it must complete first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownInput:
    """What the planner looks at in one loop. `holding`: uids of pods whose nomination holds their node."""

    snapshot: ClusterSnapshot
    observation: Observation
    view: CloudView
    deletions: Deletions
    """As they were before the provider reported the groups' sizes: a deletion that ends in between counts
    twice, and never not at all."""
    nodes: Sequence[core.Node]
    holding: frozenset[str] = frozenset()
    now: float


@dataclass(slots=True)
class _Unneeded:
    removal: Removal
    since: float


class ScaleDownPlanner:
    """Keeps unneeded clocks from loop to loop."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._unneeded: dict[str, _Unneeded] = {}
        self._hints = Hints()
        self.unremovable = UnremovableNodes()
        self.updated_at: float | None = None
        self.refused_by_quota: Counter[str] = Counter()
        """How many nodes had to stay for want of a resource, by resource."""
        self.utilization: dict[str, Utilization] = {}

    # Each loop

    def update(self, given: ScaleDownInput, candidates: Sequence[core.Node]) -> None:
        """Finds which nodes are unneeded. Changes the snapshot for this time only."""
        self.updated_at = given.now
        self.refused_by_quota = Counter()
        leaving = given.deletions.names()
        destinations = {node.metadata.name for node in given.nodes} - leaving
        self.unremovable.begin(given.snapshot.names(), given.now)
        self.utilization = {}
        budgets = RemainingBudgets(given.observation.budgets)
        with given.snapshot.fork():
            eligible = [
                node
                for node in self._ordered(given, candidates)
                if node.metadata.name not in leaving and self._is_eligible(given, node)
            ]
            found = self._simulate(given, eligible, destinations, budgets)
        self._hints.drop_old()
        self._unneeded = {
            r.node.metadata.name: _Unneeded(r, self._since(r.node.metadata.name, given.now)) for r in found
        }

    def forget(self) -> None:
        """Drop all unneeded nodes: of a cluster that is not healthy their times start again."""
        self._unneeded = {}

    def unneeded(self) -> list[str]:
        return sorted(self._unneeded)

    def due(self, given: ScaleDownInput) -> tuple[list[Removal], list[Removal]]:
        """Nodes that may go now: empty ones, and those to drain, longest unneeded first."""
        sizes = {group.id: group.target for group in given.view.groups.values()}
        quota = MinQuota(self._options, given.snapshot.nodes(), given.now)
        self.refused_by_quota = quota.refused
        empty: list[Removal] = []
        drain: list[Removal] = []
        ordered = sorted(self._unneeded.items(), key=lambda item: (item[1].since, item[0]))
        for wanted, result in ((False, empty), (True, drain)):
            for name, entry in ordered:
                if bool(entry.removal.move) is not wanted:
                    continue
                reason = self._not_due(given, entry, sizes, quota)
                if reason is not None:
                    self.unremovable.add(name, Unremovable(reason))
                else:
                    result.append(entry.removal)
        drain.sort(key=lambda removal: removal.risky)
        return empty, drain

    # Which nodes are looked at

    def candidates(self, view: CloudView, nodes: Iterable[core.Node]) -> list[core.Node]:
        """Nodes of groups that are above their minimum."""
        found = []
        for node in nodes:
            group = view.group(node.metadata.name)
            if group is not None and group.target > group.min:
                found.append(node)
        return found

    def _ordered(self, given: ScaleDownInput, candidates: Iterable[core.Node]) -> list[core.Node]:
        """Empty ones first, then those that were unneeded before; by name."""
        rules = self._rules(given, RemainingBudgets(given.observation.budgets))

        def rank(node: core.Node) -> tuple[bool, bool, str]:
            name = node.metadata.name
            needed = moves(rules, given.snapshot.pods_on(name))
            empty = needed.blocking is None and not needed.move
            return (not empty, name not in self._unneeded, name)

        return sorted(candidates, key=rank)

    def _is_eligible(self, given: ScaleDownInput, node: core.Node) -> bool:
        name = node.metadata.name
        info = given.snapshot.get(name)
        if info is None:
            reason: Reason | None = Reason.NO_NODE_INFO
        elif self.unremovable.is_recent(name):
            reason = Reason.RECENTLY_UNREMOVABLE
        else:
            reason = self._ineligible(given, node, info)
        if reason is not None:
            self.unremovable.add(name, Unremovable(reason))
        return reason is None

    def _ineligible(self, given: ScaleDownInput, node: core.Node, info: NodeInfo) -> Reason | None:
        name = node.metadata.name
        if taints.is_being_deleted(node, given.now):
            return Reason.CURRENTLY_BEING_DELETED
        if node.metadata.annotations.get(annotation_keys.SCALE_DOWN_DISABLED) == "true":
            return Reason.SCALE_DOWN_DISABLED
        if given.view.group(name) is None:
            return Reason.NOT_AUTOSCALED
        if not self._options.scale_down_unready_enabled and not readiness.is_ready(node):
            return Reason.SCALE_DOWN_UNREADY_DISABLED
        found = self._utilization(given, info)
        if found is None:
            return Reason.UNEXPECTED_ERROR
        self.utilization[name] = found
        over = found.share > self._options.scale_down_utilization_threshold
        return Reason.NOT_UNDERUTILIZED if over else None

    def _utilization(self, given: ScaleDownInput, info: NodeInfo) -> Utilization | None:
        """Return the utilization of a node; of one with devices only these count."""
        devices = given.snapshot.devices
        slices = devices.slices.of_node(info.name)
        if slices:
            pods = given.snapshot.pods_on(info.name)
            return device_utilization(slices, [claim for pod in pods for claim in devices.claims_of(pod)])
        return utilization(
            info,
            given.now,
            skip_daemons=self._options.ignore_daemonsets_utilization,
            skip_mirrors=self._options.ignore_mirror_pods_utilization,
        )

    # Whether their pods could go elsewhere

    def _rules(self, given: ScaleDownInput, budgets: RemainingBudgets) -> Rules:
        return Rules(
            options=self._options,
            budgets=budgets,
            controllers=given.observation.controllers,
            binding=given.holding,
            now=given.now,
        )

    def _simulate(
        self,
        given: ScaleDownInput,
        eligible: Sequence[core.Node],
        destinations: set[str],
        budgets: RemainingBudgets,
    ) -> list[Removal]:
        found: list[Removal] = []
        until = given.now + self._options.unremovable_node_recheck_timeout
        limit = self._unneeded_limit()
        for node in eligible:
            if len(found) >= limit:
                break
            name = node.metadata.name
            needed = moves(self._rules(given, budgets), given.snapshot.pods_on(name))
            if needed.blocking is not None:
                why = Unremovable(Reason.BLOCKED_BY_POD, needed.blocked)
                if needed.reason is BlockingReason.BINDING:
                    self.unremovable.add(name, why)  # over in seconds, most likely
                else:
                    self.unremovable.add_until(name, why, until)
                continue
            if not self._could_move(given, node, needed.move, destinations):
                self.unremovable.add_until(name, Unremovable(Reason.NO_PLACE_TO_MOVE_PODS), until)
                continue
            risky = not budgets.allow_at_once(needed.move)
            budgets.spend(needed.move)
            destinations.discard(name)
            found.append(
                Removal(
                    node=node,
                    utilization=self.utilization[name],
                    move=tuple(needed.move),
                    risky=risky,
                    waits=needed.waiting is not None,
                )
            )
        return found

    def _unneeded_limit(self) -> int:
        """How many unneeded nodes are worth finding: as many as could be deleted by the time they are due."""
        options = self._options
        parallel = options.max_scale_down_parallelism
        loops = max(int(options.scale_down_unneeded_time / max(options.scan_interval, 1e-9)), 1)
        return min(len(self._unneeded) + 2 * parallel, parallel * loops + parallel)

    def _could_move(
        self,
        given: ScaleDownInput,
        node: core.Node,
        pods: Sequence[core.Pod],
        destinations: Collection[str],
    ) -> bool:
        """Tries to place the pods elsewhere; what succeeds stays so in the snapshot, and the node is gone.

        Meanwhile a tainted ghost of the node stands in for it: the scheduler would still count its domains.
        """
        name = node.metadata.name
        with given.snapshot.fork() as commit:
            for pod in pods:
                given.snapshot.unschedule(pod, name)
            given.snapshot.remove_node(name)
            ghost = core.Node()
            ghost.CopyFrom(node)
            ghost.spec.taints.add(key=taints.TO_BE_DELETED, value=str(int(given.now)), effect="NoSchedule")
            given.snapshot.add_node(NodeInfo(name, ghost))
            left = given.snapshot.place_all(
                pods,
                self._hints,
                lambda info: info.name != name and info.name in destinations,
                stop=True,
            )
            if not left:
                given.snapshot.remove_node(name)
                commit()
        return not left

    # When they may go

    def _since(self, name: str, now: float) -> float:
        former = self._unneeded.get(name)
        return former.since if former is not None else now

    def _not_due(
        self, given: ScaleDownInput, entry: _Unneeded, sizes: dict[str, int], quota: MinQuota
    ) -> Reason | None:
        node = entry.removal.node
        group = given.view.group(node.metadata.name)
        if node.metadata.annotations.get(annotation_keys.SCALE_DOWN_DISABLED) == "true":
            return Reason.SCALE_DOWN_DISABLED
        if group is None:
            return Reason.NOT_AUTOSCALED
        if readiness.is_ready(node):
            if not entry.since + self._options.scale_down_unneeded_time < given.now:
                return Reason.NOT_UNNEEDED_LONG_ENOUGH
        elif not entry.since + self._options.scale_down_unready_time < given.now:
            return Reason.NOT_UNREADY_LONG_ENOUGH
        if sizes[group.id] - given.deletions.of_group(group.id) <= group.min:
            return Reason.MIN_SIZE_REACHED
        if not quota.take(node):
            return Reason.MINIMAL_RESOURCE_LIMIT_EXCEEDED
        sizes[group.id] -= 1
        return Reason.BLOCKED_BY_ON_COMPLETION_POD if entry.removal.waits else None


@dataclass(slots=True)
class Cropped:
    """What may be begun now."""

    empty: list[Removal] = field(default_factory=list)
    drain: list[Removal] = field(default_factory=list)


def crop(
    options: Options, deletions: Deletions, empty: Sequence[Removal], drain: Sequence[Removal]
) -> Cropped:
    """As many as may be deleted at a time, empty ones first."""
    emptying, draining = len(deletions.empty()), len(deletions.drained())
    total = max(options.max_scale_down_parallelism - emptying - draining, 0)
    first = list(empty[:total])
    drains = min(total - len(first), options.max_drain_parallelism - draining)
    return Cropped(first, list(drain[: max(drains, 0)]))
