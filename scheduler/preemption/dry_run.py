"""Find the victims on a node by trying on a copy of it.

Source: kube-scheduler 1.36, SelectVictimsOnNode and DryRunPreemption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import Candidate, Code, Handle, Status
from scheduler.framework.types import NodeInfo, PodInfo
from scheduler.preemption.budgets import Budget, split_by_violation
from scheduler.preemption.importance import by_importance
from scheduler.preemption.victim_groups import VictimGroups

NO_VICTIMS = Status(Code.UnschedulableAndUnresolvable, ("No preemption victims found for incoming pod",))


class DryRunError(Exception):
    """A plugin failed in the simulation."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message())
        self.status = status


class _Simulation:
    """A node's copy from which pods are taken and to which they are given back."""

    def __init__(self, handle: Handle, state: CycleState, pod: PodInfo, node: NodeInfo) -> None:
        self._handle = handle
        self._state = state.clone()
        self._pod = pod
        self.node = node.clone()
        self._fitted = False

    def remove(self, other: PodInfo) -> None:
        self.node.remove_pod(other.uid)
        _check(self._handle.run_pre_filter_extension_remove_pod(self._state, self._pod, other, self.node))

    def add(self, other: PodInfo) -> None:
        self.node.add_pod(other)
        _check(self._handle.run_pre_filter_extension_add_pod(self._state, self._pod, other, self.node))

    def rejection(self) -> Status | None:
        """Return why the pod does not fit now; None when it does."""
        status = self._handle.run_filter_plugins_with_nominated_pods(self._state, self._pod, self.node)
        if status is not None and not status.is_success:
            return status
        if not self._fitted:
            # Filters that do not depend on the node's pods have passed already.
            self._state.skip_filter_plugins |= self._handle.filters_blind_to_pods
            self._fitted = True
        return None


def _check(status: Status | None) -> None:
    if status is not None and not status.is_success:
        raise DryRunError(status)


def select_victims(
    handle: Handle,
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
    budgets: Sequence[Budget],
    now: float,
    groups: VictimGroups | None = None,
) -> Candidate | Status:
    """Return the victims on one node, or why it is no candidate.

    All pods of lower priority are removed first; then as many as possible are put back while the pod still
    fits, first those whose eviction would violate a budget, the more important ones before the others. Not
    minimal. With `groups` a pod of a group counts only if all pods evicted with it have a lower priority.
    """
    potential = [other for other in node.pods.values() if other.priority < pod.priority]
    if groups is not None:
        potential = [other for other in potential if groups.is_below(other, pod.priority)]
    if not potential:
        return NO_VICTIMS
    simulation = _Simulation(handle, state, pod, node)
    try:
        for other in potential:
            simulation.remove(other)
        rejection = simulation.rejection()
        if rejection is not None:
            return rejection
        potential = by_importance(potential, now)
        violating, others = split_by_violation(potential, budgets)
        victims = [victim for victim in violating if not _reprieve(simulation, victim)]
        violations = len(victims)
        victims += [victim for victim in others if not _reprieve(simulation, victim)]
    except DryRunError as error:
        return error.status
    if not victims:
        text = f'expected at least one victim pod on node "{node.name}"'
        return Status(Code.Error, (text,))
    return Candidate(node.name, tuple(by_importance(victims, now)), violations)


def _reprieve(simulation: _Simulation, victim: PodInfo) -> bool:
    """Give the pod back if the preemptor fits all the same."""
    simulation.add(victim)
    if simulation.rejection() is None:
        return True
    simulation.remove(victim)
    return False


@dataclass(slots=True)
class DryRun:
    """Candidates without budget violations first; and why other nodes gave none."""

    candidates: list[Candidate]
    statuses: dict[str, Status]


def dry_run(
    handle: Handle,
    state: CycleState,
    pod: PodInfo,
    nodes: Sequence[NodeInfo],
    budgets: Sequence[Budget],
    *,
    offset: int,
    num_candidates: int,
    now: float,
    groups: VictimGroups | None = None,
) -> DryRun:
    """Try nodes from `offset` on, around, until `num_candidates` are found and one has no violations."""
    clean: list[Candidate] = []
    violating: list[Candidate] = []
    statuses: dict[str, Status] = {}
    for index in range(len(nodes)):
        node = nodes[(offset + index) % len(nodes)]
        found = select_victims(handle, state, pod, node, budgets, now, groups)
        if isinstance(found, Status):
            statuses[node.name] = found
            continue
        (violating if found.pdb_violations else clean).append(found)
        if clean and len(clean) + len(violating) >= num_candidates:
            break
    return DryRun((clean[:num_candidates] + violating[:num_candidates]), statuses)
