"""Simulation of node removals: whether the pods of a node fit on other nodes. Pure.

Source: cluster-autoscaler 1.36, simulator's RemovalSimulator and core/scaledown/planner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.objects import taints
from nominee.autoscaler.planning.objects.pdb_tracker import RemainingPdbTracker
from nominee.autoscaler.planning.scale_down.drainability import (
    BlockingReason,
    DrainContext,
    PodsToMove,
    pods_to_move,
)
from nominee.autoscaler.planning.scale_down.scale_down_input import NodeToBeRemoved, ScaleDownInput
from nominee.autoscaler.planning.scale_down.unremovable import Reason, Unremovable, UnremovableNodes
from nominee.autoscaler.planning.scale_down.utilization import Utilization
from nominee.autoscaler.planning.snapshot.scheduling_hints import SchedulingHints
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.types import NodeInfo


def drain_context(options: Options, inputs: ScaleDownInput, budgets: RemainingPdbTracker) -> DrainContext:
    """Return the context of the drainability rules in this loop."""
    return DrainContext(
        options=options,
        budgets=budgets,
        controllers=inputs.observation.controllers,
        binding=inputs.binding,
        now=inputs.at.now,
    )


class RemovalSimulator:
    """Simulate removals one after the other; each leaves less room for the pods of the next."""

    def __init__(self, options: Options, hints: SchedulingHints) -> None:
        self._options, self._hints = options, hints
        self.failed_with_hints: list[str] = []
        """The nodes whose pods have found no place, and had hints: without them they might find one."""

    def simulate(
        self,
        inputs: ScaleDownInput,
        eligible: Sequence[core.Node],
        utilizations: Mapping[str, Utilization],
        unremovable: UnremovableNodes,
        nodes_max: int,
    ) -> list[NodeToBeRemoved]:
        """Return the nodes that can be removed together, `nodes_max` at most.

        Changes the snapshot: removed nodes are gone, their pods are on other nodes. The reasons of the others
        are added to `unremovable`.
        """
        removed: list[NodeToBeRemoved] = []
        self.failed_with_hints = []
        budgets = RemainingPdbTracker(inputs.observation.budgets)
        destinations = {node.metadata.name for node in inputs.nodes} - inputs.deletions.nodes()
        recheck_after = inputs.at.monotonic + self._options.unremovable_node_recheck_timeout
        for node in eligible:
            if len(removed) >= nodes_max:
                break
            name = node.metadata.name
            context = drain_context(self._options, inputs, budgets)
            to_move = pods_to_move(context, inputs.snapshot.pods_on(name))
            if to_move.blocking is not None:
                _add_blocked(unremovable, name, to_move, recheck_after)
                continue
            has_hints = any(self._hints.get(pod.metadata.uid) for pod in to_move.pods)
            if not self._reschedule(inputs, node, to_move.pods, destinations):
                if has_hints:
                    self.failed_with_hints.append(name)
                reason = Unremovable(Reason.NO_PLACE_TO_MOVE_PODS)
                unremovable.add_timeout(name, reason, recheck_after)
                continue
            is_risky = not budgets.can_remove_at_once(to_move.pods)
            budgets.remove(to_move.pods)
            destinations.discard(name)
            removed.append(
                NodeToBeRemoved(
                    node=node,
                    utilization=utilizations[name],
                    pods_to_reschedule=tuple(to_move.pods),
                    is_risky=is_risky,
                    on_completion=to_move.on_completion is not None,
                )
            )
        return removed

    def _reschedule(
        self,
        inputs: ScaleDownInput,
        node: core.Node,
        pods: Sequence[core.Pod],
        destinations: Collection[str],
    ) -> bool:
        """Remove the node and schedule its pods on `destinations`; revert that unless all pods fit.

        During the simulation a tainted copy of the node stays in the snapshot, since the scheduler would
        still count its topology domains.
        """
        name = node.metadata.name
        with inputs.snapshot.fork() as commit:
            for pod in pods:
                inputs.snapshot.unschedule_pod(pod, name)
            inputs.snapshot.remove_node(name)
            copy = copy_of(node)
            copy.spec.taints.add(key=taints.TO_BE_DELETED, value=str(int(inputs.at.now)), effect="NoSchedule")
            inputs.snapshot.add_node(NodeInfo(name, copy))
            unschedulable = inputs.snapshot.try_schedule_pods(
                pods,
                self._hints,
                lambda info: info.name != name and info.name in destinations,
                break_on_failure=True,
            )
            if not unschedulable:
                inputs.snapshot.remove_node(name)
                commit()
        return not unschedulable


def _add_blocked(unremovable: UnremovableNodes, name: str, to_move: PodsToMove, recheck_after: float) -> None:
    """Record that a pod blocks the removal of a node.

    A binding ends within seconds, so that a node that it blocks is simulated again in the next loop.
    """
    reason = Unremovable(Reason.BLOCKED_BY_POD, to_move.blocked_by)
    if to_move.reason is BlockingReason.BINDING:
        unremovable.add(name, reason)
    else:
        unremovable.add_timeout(name, reason, recheck_after)
