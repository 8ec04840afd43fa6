"""Find the victims on many nodes at once, over columns of the free amounts.

The same victims and statuses as `dry_run.select_victims` finds node by node, where no filter looks at more of
a node's pods than their requests and their number; see docs/design/026-preemption-over-columns.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.api.handle_protocols import Filter
from nominee.scheduler.framework.cluster.room import Int64s, TrialRoom, amounts_of
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Candidate,
    Handle,
    RoomFilterPlugin,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.preemption.budgets import Budget, violations
from nominee.scheduler.preemption.importance import by_importance
from nominee.scheduler.preemption.pods_by_importance import NodePods, PodsByImportance
from nominee.scheduler.preemption.statuses import FIRST_ONLY_SINCE, NO_VICTIMS, without_victims
from nominee.scheduler.preemption.victim_groups import Victim

Positions = NDArray[np.intp]


@dataclass(slots=True)
class _Potential:
    """The pods that may be evicted, node after node.

    `amounts` are those of all of them, `[pods, resources]`; those of the node at position i begin at
    `starts[i]` and are `counts[i]`, the most important first. `order` is the order in which they are
    given back; `violating` is how many budgets' worth of pods the eviction of each violates.
    """

    on: list[NodePods]
    first: list[int]
    counts: Positions
    starts: Positions
    amounts: Int64s
    order: Positions
    violating: Int64s

    def pods_at(self, position: int) -> Sequence[PodInfo]:
        """Return the pods of the node, the most important first."""
        return self.on[position].pods[self.first[position] :]


class ColumnDryRun:
    """The dry run of one preemptor."""

    def __init__(
        self, handle: Handle, state: CycleState, pod: PodInfo, budgets: Sequence[Budget], now: float
    ) -> None:
        self._handle = handle
        self._state = state.clone()
        self._pod = pod
        self._budgets = budgets
        self._now = now
        self._filters = _filters(handle, state)
        self._room_filters = [each for each in self._filters if isinstance(each, RoomFilterPlugin)]
        self._pods = handle.snapshot.companion(PodsByImportance)
        self._pods.follow(handle.snapshot)

    @staticmethod
    def is_possible(handle: Handle, state: CycleState) -> bool:
        """Return whether every filter of this cycle looks at pods only for their requests and number."""
        return not handle.follows_pods(state) and all(
            isinstance(each, RoomFilterPlugin) or not each.looks_at_pods for each in _filters(handle, state)
        )

    def select(self, nodes: Sequence[NodeInfo]) -> list[Candidate | Status | None]:
        """Return the victims on each node, or why it is no candidate; None: try the node on its own.

        Raises what a filter raises.
        """
        found: list[Candidate | Status | None] = [NO_VICTIMS] * len(nodes)
        priority, now, pods_on = self._pod.priority, self._now, self._pods.on
        nominated = self._handle.nominator.by_node
        places, on, first = [], [], []
        for place, node in enumerate(nodes):
            pods = pods_on(node)
            index = pods.first_below(priority)
            if index == len(pods.pods):
                continue
            counts_twice = nominated and not node.pods.keys().isdisjoint(nominated.get(node.name, ()))
            if pods.last_started >= now or counts_twice:
                found[place] = None
                continue
            places.append(place)
            on.append(pods)
            first.append(index)
        if not places:
            return found
        potential = self._potential(on, first)
        room = self._emptied([nodes[place] for place in places], potential)
        for position, status in self._rejections(room).items():
            found[places[position]] = status
        fitting = np.array([p for p, place in enumerate(places) if found[place] is NO_VICTIMS], np.intp)
        room.keep(fitting)
        evicted = self._give_back(room, fitting, potential)
        for position in fitting.tolist():
            name = nodes[places[position]].name
            found[places[position]] = self._candidate(name, position, potential, evicted)
        return found

    def _potential(self, on: list[NodePods], first: list[int]) -> _Potential:
        counts = np.array([len(o.pods) - f for o, f in zip(on, first, strict=True)], np.intp)
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        amounts = np.concatenate([o.amounts[f:] for o, f in zip(on, first, strict=True)])
        order, violating = np.arange(len(amounts)), np.zeros(len(amounts), np.int64)
        potential = _Potential(on, first, counts, starts, amounts, order, violating)
        if self._budgets:
            for position, start in enumerate(starts.tolist()):
                self._spare_budgets(potential, position, start)
        return potential

    def _spare_budgets(self, potential: _Potential, position: int, start: int) -> None:
        """Give back first the pods of a node whose eviction would violate a budget."""
        victims = [Victim((pod,), pod.priority) for pod in potential.pods_at(position)]
        first_only = self._handle.version >= FIRST_ONLY_SINCE
        violating = np.array(violations(victims, self._budgets, first_only=first_only))
        whole = slice(start, start + len(victims))
        potential.violating[whole] = violating
        potential.order[whole] = start + np.argsort(violating == 0, kind="stable")

    def _emptied(self, nodes: Sequence[NodeInfo], potential: _Potential) -> TrialRoom:
        """Return the room without all potential victims, beside the pods nominated to the nodes."""
        snapshot = self._handle.snapshot
        room = TrialRoom(snapshot, np.array([snapshot.row_of[node.name] for node in nodes], np.intp))
        freed = np.add.reduceat(potential.amounts, potential.starts, axis=0)
        room.give(np.arange(len(nodes)), freed, potential.counts)
        by_node, pod = self._handle.nominator.by_node, self._pod
        for position, node in enumerate(nodes if by_node else ()):
            nominated = by_node.get(node.name, {}).values()
            competing = tuple(o for o in nominated if o.priority >= pod.priority and o.uid != pod.uid)
            if competing:
                taken = amounts_of(competing).sum(axis=0, keepdims=True)
                room.take(np.array([position]), taken, len(competing))
        return room

    def _rejections(self, room: TrialRoom) -> dict[int, Status]:
        """Return for each node that stays closed the status of the first filter that rejects it."""
        state, pod, snapshot = self._state, self._pod, self._handle.snapshot
        found: dict[int, Status] = {}
        fits = np.ones(len(room.rows), np.bool_)
        for plugin in self._filters:
            mask = self._mask(plugin, room)
            if mask is None:
                continue
            rejected = np.flatnonzero(fits & ~mask)
            fits &= mask
            if not len(rejected):
                continue
            if isinstance(plugin, RoomFilterPlugin):
                statuses, index = plugin.explain_room(state, pod, room, rejected)
            else:
                statuses, index = plugin.explain_all(state, pod, snapshot, room.rows[rejected])
            named = [status.with_plugin(plugin.name) for status in statuses]
            for position, number in zip(rejected.tolist(), index.tolist(), strict=True):
                found[position] = named[number]
        return found

    def _mask(self, plugin: Filter, room: TrialRoom) -> NDArray[np.bool_] | None:
        """Return which nodes the plugin accepts; None: all."""
        state, pod, snapshot = self._state, self._pod, self._handle.snapshot
        hooks = state.hooks.filter_rows
        began = self._handle.clock.monotonic() if hooks else 0.0
        if isinstance(plugin, RoomFilterPlugin):
            mask: NDArray[np.bool_] | None = plugin.filter_room(state, pod, room)
        else:
            mask = plugin.filter_all(state, pod, snapshot, room.rows)
        for hook in hooks:
            seconds = self._handle.clock.monotonic() - began
            hook(state, pod, snapshot, room.rows, plugin, mask, seconds)
        return mask

    def _give_back(self, room: TrialRoom, fitting: Positions, potential: _Potential) -> list[bool]:
        """Give back as many pods as the preemptor leaves room for; return which of them stay evicted.

        One round gives back the next pod of every node. `room` has the nodes at the positions `fitting`.
        """
        evicted = np.zeros(len(potential.amounts), np.bool_)
        counts, starts = potential.counts[fitting], potential.starts[fitting]
        for number in range(int(counts.max(initial=0))):
            having = np.flatnonzero(counts > number)
            pods = potential.order[starts[having] + number]
            room.take(having, potential.amounts[pods])
            fits = np.ones(len(fitting), np.bool_)
            for plugin in self._room_filters:
                mask = self._mask(plugin, room)
                if mask is not None:
                    fits &= mask
            stay = ~fits[having]
            room.give(having[stay], potential.amounts[pods[stay]])
            evicted[pods[stay]] = True
        return evicted.tolist()

    def _candidate(
        self, name: str, position: int, potential: _Potential, evicted: Sequence[bool]
    ) -> Candidate | Status:
        start, count = potential.starts[position], potential.counts[position]
        pods = potential.pods_at(position)
        if not self._budgets:
            victims = tuple(itertools.compress(pods, evicted[start : start + count]))
            return Candidate(name, victims, 0) if victims else without_victims(name)
        order = [index for index in potential.order[start : start + count].tolist() if evicted[index]]
        chosen = [Victim((pods[index - start],), pods[index - start].priority) for index in order]
        if not chosen:
            return without_victims(name)
        victims = tuple(victim.pods[0] for victim in by_importance(chosen, self._now))
        return Candidate(name, victims, int(potential.violating[order].sum()))


def _filters(handle: Handle, state: CycleState) -> list[Filter]:
    return [plugin for plugin in handle.filter_plugins if plugin.name not in state.skip_filter_plugins]
