"""One pod's way through the plugins to a node: PreFilter, Filter, Score, and the choice.

Pure: what is random (the choice among equals) comes from `rng`, and where the search begins from `start`.
Source: kube-scheduler 1.36, schedulePod and what it calls; KEP-1923 for the nominated node.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis, FitError, NodeStatusTable
from scheduler.framework.interface import Code, FilterPlugin, PreFilterResult, Rows, Status
from scheduler.framework.runtime import Framework
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import PodInfo

FEASIBLE_NODES_MIN = 100
PERCENTAGE_MIN = 5
PERCENTAGE_START = 50
NODES_PER_PERCENT = 125


class NoNodesError(Exception):
    """The cluster has no nodes at all."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


class AlgorithmError(Exception):
    """A plugin failed; its status says which and why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message())
        self.status = status


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """Where the pod should go. `evaluated` and `feasible` are numbers of nodes."""

    node_name: str
    evaluated: int
    feasible: int
    next_start: int


@dataclass(slots=True)
class Search:
    """What the filters found: feasible rows in the order they were tried, and traces of the rest."""

    rows: NDArray[np.intp]
    processed: int
    # Of each stretch of rows: the rows, and the verdicts of plugins that refused some of them.
    traces: list[tuple[Rows, list[tuple[FilterPlugin, NDArray[np.bool_]]]]] = field(default_factory=list)


def feasible_nodes_wanted(percentage: int | None, nodes: int) -> int:
    """How many feasible nodes are enough (numFeasibleNodesToFind).

    `percentage` None or 0 adapts to the cluster: 50 % less one for every 125 nodes, at least 5 %; and never
    fewer than 100 nodes.
    """
    if nodes < FEASIBLE_NODES_MIN:
        return nodes
    if not percentage:
        percentage = max(PERCENTAGE_START - nodes // NODES_PER_PERCENT, PERCENTAGE_MIN)
    return max(nodes * percentage // 100, FEASIBLE_NODES_MIN) if percentage < 100 else nodes


def schedule_pod(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    *,
    start: int = 0,
    percentage: int | None = None,
    rng: random.Random,
) -> ScheduleResult:
    """The node for the pod.

    Raises NoNodesError, FitError (no node fits; it carries the diagnosis), or when a plugin failed
    AlgorithmError, FilterError or ScoreError.
    """
    total = len(snapshot)
    if not total:
        raise NoNodesError()
    search, next_start = find_feasible(framework, state, pod, snapshot, start=start, percentage=percentage)
    rows = search.rows
    if len(rows) == 1:
        return ScheduleResult(snapshot.nodes[int(rows[0])].name, search.processed, 1, next_start)
    scores = prioritize(framework, state, pod, snapshot, rows)
    best = np.flatnonzero(scores == scores.max())
    pick = int(best[rng.randrange(len(best))]) if len(best) > 1 else int(best[0])
    return ScheduleResult(snapshot.nodes[int(rows[pick])].name, search.processed, len(rows), next_start)


def find_feasible(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    *,
    start: int = 0,
    percentage: int | None = None,
) -> tuple[Search, int]:
    """Nodes that fit, the nominated one alone if it does, and where the next search begins.

    Raises FitError when there are none.
    """
    total = len(snapshot)
    narrowed, status, narrowing = framework.run_pre_filter_plugins(state, pod, snapshot)
    if status is not None:
        if not status.is_rejected:
            raise AlgorithmError(status)
        diagnosis = Diagnosis(
            NodeStatusTable(snapshot, status),
            unschedulable_plugins=set(narrowing),
            pre_filter_message=status.message(),
        )
        diagnosis.add_plugin(status)
        raise FitError(total, diagnosis)
    nominated = _nominated_row(framework, state, pod, snapshot)
    if nominated is not None:
        return Search(np.array([nominated], dtype=np.intp), 1), start
    rows = _narrowed_rows(narrowed, snapshot)
    if framework.profile.percentage_of_nodes_to_score is not None:
        percentage = framework.profile.percentage_of_nodes_to_score
    limit = feasible_nodes_wanted(percentage, total if rows is None else len(rows))
    if not framework.has_score_plugins:
        limit = 1
    search = search_rows(framework, state, pod, snapshot, rows, limit=limit, start=start)
    next_start = (start + search.processed) % total
    if len(search.rows):
        return search, next_start
    diagnosis = explain(framework, state, pod, snapshot, search)
    if rows is not None:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}]"
        diagnosis.statuses.absent = Status(Code.UnschedulableAndUnresolvable, (text,))
        diagnosis.unschedulable_plugins |= narrowing
    raise FitError(total, diagnosis)


def _nominated_row(framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> int | None:
    """The row of the pod's own nominated node if it fits there: it is then taken without a look at others."""
    name = pod.pod.status.nominatedNodeName
    if not name:
        return None
    row = snapshot.row_of.get(name)
    if row is None:
        return None
    status = framework.run_filter_plugins_with_nominated_pods(state, pod, snapshot.nodes[row])
    return row if status is None or status.is_success else None


def _narrowed_rows(narrowed: PreFilterResult, snapshot: Snapshot) -> NDArray[np.intp] | None:
    if narrowed.node_names is None:
        return None
    found = (snapshot.row_of.get(name) for name in narrowed.node_names)
    return np.array(sorted(row for row in found if row is not None), dtype=np.intp)


def _stretches(rows: NDArray[np.intp] | None, total: int, start: int, first: int) -> list[Rows]:
    """The rows from `start` on and around, in stretches: one of `first` rows, then the rest."""
    bounds = []
    begin = start % total if total else 0
    middle = min(begin + first, total)
    for low, high in ((begin, middle), (middle, total), (0, begin)):
        if low < high:
            bounds.append(slice(low, high))
    if rows is None:
        return list(bounds)
    return [rows[bound] for bound in bounds]


def search_rows(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    rows: NDArray[np.intp] | None,
    *,
    limit: int,
    start: int,
) -> Search:
    """Feasible rows among the given ones (None: all), at most `limit`, beginning with the start-th."""
    total = len(snapshot) if rows is None else len(rows)
    crowded = _crowded_rows(framework, pod, snapshot)
    found: list[NDArray[np.intp]] = []
    count = processed = 0
    search = Search(np.empty(0, dtype=np.intp), 0)
    for stretch in _stretches(rows, total, start, limit):
        verdicts = framework.filter_rows(state, pod, snapshot, stretch)
        search.traces.append((stretch, verdicts))
        size = stretch.stop - stretch.start if isinstance(stretch, slice) else len(stretch)
        if not verdicts:
            positions = np.arange(size, dtype=np.intp)
        else:
            passed = verdicts[0][1]
            for _, mask in verdicts[1:]:
                passed = passed & mask
            positions = np.flatnonzero(passed)
        if crowded:
            positions = _without_crowded(framework, state, pod, snapshot, stretch, positions, crowded)
        if count + len(positions) >= limit:
            positions = positions[: limit - count]
            size = int(positions[-1]) + 1
        found.append(positions + stretch.start if isinstance(stretch, slice) else stretch[positions])
        count += len(positions)
        processed += size
        if count >= limit:
            break
    search.rows = found[0] if len(found) == 1 else np.concatenate(found or [search.rows])
    search.processed = processed
    return search


def _crowded_rows(framework: Framework, pod: PodInfo, snapshot: Snapshot) -> frozenset[int]:
    """Rows of nodes that other pods are nominated to which this pod must leave room for."""
    by_node = framework.nominator.by_node
    if not by_node:
        return frozenset()
    rows = []
    for name, pods in by_node.items():
        row = snapshot.row_of.get(name)
        if row is not None and any(p.priority >= pod.priority and u != pod.uid for u, p in pods.items()):
            rows.append(row)
    return frozenset(rows)


def _without_crowded(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    stretch: Rows,
    positions: NDArray[np.intp],
    crowded: frozenset[int],
) -> NDArray[np.intp]:
    """Takes out rows where the pod does not fit beside the pods nominated to them."""
    offset = stretch.start if isinstance(stretch, slice) else None
    kept = []
    for position in positions.tolist():
        row = position + offset if offset is not None else int(stretch[position])  # type: ignore[index]
        if row in crowded:
            status = framework.run_filter_plugins_with_nominated_pods(state, pod, snapshot.nodes[row])
            if status is not None and not status.is_success:
                if not status.is_rejected:
                    raise AlgorithmError(status)
                continue
        kept.append(position)
    return np.array(kept, dtype=np.intp)


def explain(
    framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot, search: Search
) -> Diagnosis:
    """Why each row was refused: the first plugin that did, as upstream stops at it."""
    table = NodeStatusTable(snapshot)
    diagnosis = Diagnosis(table)
    crowded = np.zeros(len(snapshot), dtype=np.bool_)
    crowded[list(_crowded_rows(framework, pod, snapshot))] = True
    for stretch, verdicts in search.traces:
        rows = np.arange(stretch.start, stretch.stop) if isinstance(stretch, slice) else stretch
        for row in rows[crowded[rows]].tolist():
            status = framework.run_filter_plugins_with_nominated_pods(state, pod, snapshot.nodes[row])
            if status is not None and not status.is_success:
                table.set_row(row, status)
                diagnosis.add_plugin(status)
        alive = ~crowded[rows]
        for plugin, mask in verdicts:
            refused = rows[alive & ~mask]
            alive &= mask
            if not len(refused):
                continue
            statuses, index = plugin.explain_all(state, pod, snapshot, refused)
            named = [status.with_plugin(plugin.name) for status in statuses]
            table.set(refused, named, index)
            for status in named:
                diagnosis.add_plugin(status)
    return diagnosis


def prioritize(
    framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
) -> NDArray[np.int64]:
    """The sum of weighted scores of each feasible row; all alike where nothing scores."""
    status = framework.run_pre_score_plugins(state, pod, snapshot, rows)
    if status is not None:
        raise AlgorithmError(status)
    scores = list(framework.run_score_plugins(state, pod, snapshot, rows).values())
    if not scores:
        return np.ones(len(rows), dtype=np.int64)
    total = scores[0].copy()
    for score in scores[1:]:
        total += score
    return total
