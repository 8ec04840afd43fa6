"""Scale-down planner: which nodes are unneeded, and which of them are deleted now. Pure.

Source: cluster-autoscaler 1.36, core/scaledown/planner and actuation's budgets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.objects.observation import CloudView
from nominee.autoscaler.planning.objects.pdb_tracker import RemainingPdbTracker
from nominee.autoscaler.planning.scale_down.drainability import pods_to_move
from nominee.autoscaler.planning.scale_down.eligibility import filter_out_unremovable
from nominee.autoscaler.planning.scale_down.node_deletion_tracker import NodeDeletionTracker
from nominee.autoscaler.planning.scale_down.removal_simulator import RemovalSimulator, drain_context
from nominee.autoscaler.planning.scale_down.scale_down_input import NodeToBeRemoved, ScaleDownInput
from nominee.autoscaler.planning.scale_down.unneeded_nodes import UnneededNodes
from nominee.autoscaler.planning.scale_down.unremovable import UnremovableNodes
from nominee.autoscaler.planning.scale_down.utilization import Utilization
from nominee.autoscaler.planning.snapshot.scheduling_hints import SchedulingHints
from nominee.machinery.api.pb import core


@dataclass(slots=True)
class NodesToDelete:
    """Nodes whose deletion starts now."""

    empty: list[NodeToBeRemoved] = field(default_factory=list)
    drain: list[NodeToBeRemoved] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.empty or self.drain)


class ScaleDownPlanner:
    """Plan scale-down, and keep since when nodes are unneeded."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._hints = SchedulingHints()
        self._simulator = RemovalSimulator(options, self._hints)
        self.unneeded_nodes = UnneededNodes(options)
        self.unremovable = UnremovableNodes()
        self.utilization: dict[str, Utilization] = {}
        self.updated_at: float | None = None
        """In seconds since the epoch."""
        self.refused_by_quota: Counter[str] = Counter()
        """Nodes that a lower limit of the cluster keeps in this loop, by resource."""
        self._held_by_hints: list[str] = []
        self._find_held: Callable[[], list[str]] | None = None
        """None: the answer is known."""

    def unneeded_names(self) -> list[str]:
        return self.unneeded_nodes.names()

    def held_by_hints(self) -> list[str]:
        """Return the nodes that fail with the hints of earlier loops and can be removed without them.

        Only a debug page asks: no loop simulates twice for this.
        """
        if self._find_held is not None:
            self._held_by_hints, self._find_held = self._find_held(), None
        return self._held_by_hints

    def update_cluster_state(self, inputs: ScaleDownInput, candidates: Sequence[core.Node]) -> None:
        """Find which candidates are unneeded. The snapshot is the same afterwards."""
        self.updated_at = inputs.at.now
        self.refused_by_quota = Counter()
        self.unremovable.update(inputs.snapshot.names(), inputs.at.monotonic)
        with inputs.snapshot.fork():
            eligible, self.utilization = filter_out_unremovable(
                self._options, inputs, self._sorted(inputs, candidates), self.unremovable
            )
            nodes_max = self._unneeded_nodes_limit()
            removals = self._simulator.simulate(
                inputs, eligible, self.utilization, self.unremovable, nodes_max
            )
        failed, self._held_by_hints, self._find_held = self._simulator.failed_with_hints, [], None
        if failed:
            self._find_held = partial(self._removable_without_hints, failed, inputs, eligible, nodes_max)
        self._hints.drop_old()
        self.unneeded_nodes.update(removals, inputs.at.monotonic)

    def _removable_without_hints(
        self, failed: Sequence[str], inputs: ScaleDownInput, eligible: Sequence[core.Node], nodes_max: int
    ) -> list[str]:
        """Return which nodes can be removed if no pod has a hint, neither theirs nor those removed before."""
        simulator = RemovalSimulator(self._options, SchedulingHints())
        with inputs.snapshot.fork():
            inputs.snapshot.search_from_start()
            found = simulator.simulate(inputs, eligible, self.utilization, UnremovableNodes(), nodes_max)
        return sorted({each.node.metadata.name for each in found}.intersection(failed))

    def clean_up_unneeded_nodes(self) -> None:
        """Drop all unneeded nodes: in an unhealthy cluster their times start again."""
        self.unneeded_nodes.clear()

    def nodes_to_delete(self, inputs: ScaleDownInput, deletions: NodeDeletionTracker) -> NodesToDelete:
        """Return the nodes that may be deleted now; `deletions` are those in progress at this moment."""
        empty, drain, self.refused_by_quota = self.unneeded_nodes.removable_at(inputs, self.unremovable)
        return crop_to_budgets(self._options, deletions, empty, drain)

    def _sorted(self, inputs: ScaleDownInput, candidates: Iterable[core.Node]) -> list[core.Node]:
        """Sort candidates: empty nodes first, then those that were unneeded before; by name."""
        context = drain_context(self._options, inputs, RemainingPdbTracker(inputs.observation.budgets))

        def rank(node: core.Node) -> tuple[bool, bool, str]:
            name = node.metadata.name
            to_move = pods_to_move(context, inputs.snapshot.pods_on(name))
            empty = to_move.blocking is None and not to_move.pods
            return (not empty, name not in self.unneeded_nodes, name)

        return sorted(candidates, key=rank)

    def _unneeded_nodes_limit(self) -> int:
        """Return how many unneeded nodes to look for: as many as can be deleted when they are due."""
        options = self._options
        parallel = options.max_scale_down_parallelism
        loops = max(int(options.scale_down_unneeded_time / max(options.scan_interval, 1e-9)), 1)
        return min(len(self.unneeded_nodes) + 2 * parallel, parallel * loops + parallel)


def scale_down_candidates(view: CloudView, nodes: Iterable[core.Node]) -> list[core.Node]:
    """Return the nodes of groups that are above their minimum size."""
    candidates = []
    for node in nodes:
        group = view.group(node.metadata.name)
        if group is not None and group.target > group.min:
            candidates.append(node)
    return candidates


def crop_to_budgets(
    options: Options,
    deletions: NodeDeletionTracker,
    empty: Sequence[NodeToBeRemoved],
    drain: Sequence[NodeToBeRemoved],
) -> NodesToDelete:
    """Return as many nodes as may be deleted in parallel, empty nodes first."""
    deleting, draining = len(deletions.empty()), len(deletions.drains())
    total = max(options.max_scale_down_parallelism - deleting - draining, 0)
    chosen = list(empty[:total])
    drains = min(total - len(chosen), options.max_drain_parallelism - draining)
    return NodesToDelete(chosen, list(drain[: max(drains, 0)]))
