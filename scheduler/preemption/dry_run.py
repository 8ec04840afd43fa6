"""Find the victims on a node by trying on a copy of it.

Source: kube-scheduler 1.36, SelectVictimsOnNode and DryRunPreemption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nominee.machinery.features.gates import Version
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Candidate, Code, Handle, Status
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.preemption.budgets import Budget, violations
from nominee.scheduler.preemption.importance import by_importance
from nominee.scheduler.preemption.victim_groups import Victim, VictimGroups, single_victims

FIRST_ONLY_SINCE = Version(1, 37)
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
        self._pods = node.pods
        self.node = node.clone()
        self._fitted = False

    def remove(self, victim: Victim) -> None:
        """Take the victim's pods on this node away; those on other nodes do not matter to the fit here."""
        for other in self._on_this_node(victim):
            self.node.remove_pod(other.uid)
            _check(self._handle.run_pre_filter_extension_remove_pod(self._state, self._pod, other, self.node))

    def add(self, victim: Victim) -> None:
        """Give the victim's pods on this node back."""
        for other in self._on_this_node(victim):
            self.node.add_pod(other)
            _check(self._handle.run_pre_filter_extension_add_pod(self._state, self._pod, other, self.node))

    def _on_this_node(self, victim: Victim) -> Iterator[PodInfo]:
        return (other for other in victim.pods if other.uid in self._pods)

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

    All victims of lower priority are removed first; then as many as possible are put back while the pod still
    fits, first those whose eviction would violate a budget, the more important ones before the others. Not
    minimal. With `groups` a group may be a victim as a whole, with its pods on other nodes.
    """
    potential = single_victims(node, pod.priority) if groups is None else groups.victims(node, pod)
    if not potential:
        return NO_VICTIMS
    simulation = _Simulation(handle, state, pod, node)
    try:
        for victim in potential:
            simulation.remove(victim)
        rejection = simulation.rejection()
        if rejection is not None:
            return rejection
        potential = by_importance(potential, now)
        victims, violating = _not_reprieved(
            simulation,
            potential,
            violations(potential, budgets, first_only=handle.version >= FIRST_ONLY_SINCE),
        )
    except DryRunError as error:
        return error.status
    if not victims:
        text = f'expected at least one victim pod on node "{node.name}"'
        return Status(Code.Error, (text,))
    pods = tuple(other for victim in by_importance(victims, now) for other in victim.pods)
    return Candidate(node.name, pods, violating)


def _not_reprieved(
    simulation: _Simulation, potential: Sequence[Victim], violating: Sequence[int]
) -> tuple[list[Victim], int]:
    """Return the victims that cannot be given back, and how many pods of them violate a budget."""
    victims: list[Victim] = []
    count = 0
    for first in (True, False):
        for victim, number in zip(potential, violating, strict=True):
            if (number > 0) is first and not _reprieve(simulation, victim):
                victims.append(victim)
                count += number
    return victims, count


def _reprieve(simulation: _Simulation, victim: Victim) -> bool:
    """Give the victim back if the preemptor fits all the same."""
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
