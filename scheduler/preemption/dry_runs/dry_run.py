"""Find the victims on a node by trying on a copy of it; on many at once where columns are enough.

Source: kube-scheduler 1.36, SelectVictimsOnNode and DryRunPreemption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Candidate, Handle, Status
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.preemption.budgets import Budget, violations
from nominee.scheduler.preemption.dry_runs.column_dry_run import ColumnDryRun
from nominee.scheduler.preemption.importance import by_importance
from nominee.scheduler.preemption.statuses import FIRST_ONLY_SINCE, NO_VICTIMS, without_victims
from nominee.scheduler.preemption.victim_groups import Victim, VictimGroups, single_victims

MANY_MIN: Final = 16  # nodes in a further round over columns


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
        return without_victims(node.name)
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
    order = (*nodes[offset:], *nodes[:offset])
    if groups is None and ColumnDryRun.is_possible(handle, state):
        tries = _many_at_once(handle, state, pod, order, budgets, at_least=num_candidates, now=now)
    else:
        tries = (select_victims(handle, state, pod, node, budgets, now, groups) for node in order)
    for node, found in zip(order, tries, strict=True):
        if isinstance(found, Status):
            statuses[node.name] = found
            continue
        (violating if found.pdb_violations else clean).append(found)
        if clean and len(clean) + len(violating) >= num_candidates:
            break
    return DryRun((clean[:num_candidates] + violating[:num_candidates]), statuses)


def _many_at_once(
    handle: Handle,
    state: CycleState,
    pod: PodInfo,
    nodes: Sequence[NodeInfo],
    budgets: Sequence[Budget],
    *,
    at_least: int,
    now: float,
) -> Iterator[Candidate | Status]:
    """Yield the result of `select_victims` for each node, found over columns, `at_least` nodes first."""
    columns = ColumnDryRun(handle, state, pod, budgets, now)
    begin, size, missing = 0, at_least, at_least
    while begin < len(nodes):
        some = nodes[begin : begin + size]
        try:
            found = columns.select(some)
        except Exception:  # noqa: BLE001  # plugins come from outside; node by node the error gets its status
            found = [None] * len(some)
        for node, each in zip(some, found, strict=True):
            result = select_victims(handle, state, pod, node, budgets, now) if each is None else each
            missing -= isinstance(result, Candidate)
            yield result
        begin, size = begin + size, max(missing + missing // 4, size // 4, MANY_MIN)
