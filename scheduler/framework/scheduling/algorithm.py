"""Find a node for one pod: PreFilter, Filter, Score, and the choice.

Pure: the choice among equals uses `rng`, and the search begins at `start`.
Source: kube-scheduler 1.36, schedulePod and what it calls; KEP-1923 for the nominated node.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.api.status import is_success
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, FilterPlugin, PreFilterResult, Rows, Status
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.scheduling.diagnosis import Diagnosis, FitError, NodeStatusTable
from nominee.scheduler.framework.types import PodInfo

FEASIBLE_NODES_MIN = 100
PERCENTAGE_MIN = 5
PERCENTAGE_START = 50
NODES_PER_PERCENT = 125


class NoNodesError(Exception):
    """The cluster has no nodes at all."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


class AlgorithmError(Exception):
    """A plugin failed; its status has the plugin and the error."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message())
        self.status = status


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The node for the pod. `evaluated` and `feasible` are numbers of nodes."""

    node_name: str
    evaluated: int
    feasible: int
    next_start: int


@dataclass(frozen=True, slots=True)
class OwnNode:
    """The row of the pod's own nominated node, and why the pod does not fit there; None: it does."""

    row: int
    rejection: Status | None


@dataclass(slots=True)
class Search:
    """The result of the filters: feasible rows in the order they were tried, and traces of the rest."""

    rows: NDArray[np.intp]
    processed: int
    # Of each stretch of rows: the rows, and the verdicts of plugins that rejected some of them.
    traces: list[tuple[Rows, list[tuple[FilterPlugin, NDArray[np.bool_]]]]] = field(default_factory=list)


def num_feasible_nodes_to_find(percentage: int | None, nodes: int) -> int:
    """Return how many feasible nodes end the search (numFeasibleNodesToFind).

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
    """Return the node for the pod.

    Raises:
        NoNodesError: the cluster has no nodes.
        FitError: no node fits; it carries the diagnosis.
        AlgorithmError, FilterError, ScoreError: a plugin failed.
    """
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
    """Return the nodes that fit, the nominated one alone if it does, and where the next search begins.

    Raises NoNodesError, FitError (no node fits), AlgorithmError or FilterError (a plugin failed).
    """
    total = len(snapshot)
    rows, narrowing = pre_filter(framework, state, pod, snapshot)
    own = own_node(framework, state, pod, snapshot)
    if own is not None and own.rejection is None:
        return Search(np.array([own.row], dtype=np.intp), 1), start
    if framework.profile.percentage_of_nodes_to_score is not None:
        percentage = framework.profile.percentage_of_nodes_to_score
    limit = num_feasible_nodes_to_find(percentage, total if rows is None else len(rows))
    if not framework.has_score_plugins:
        limit = 1
    search = framework.run_search(
        state, lambda: search_rows(framework, state, pod, snapshot, rows, limit=limit, start=start)
    )
    next_start = (start + search.processed) % total
    if len(search.rows):
        return search, next_start
    raise FitError(total, diagnose(framework, state, pod, snapshot, search, narrowing, own))


@dataclass(frozen=True, slots=True)
class Survey:
    """The results of the filters for every node. `narrowing`: plugins whose PreFilter left nodes out."""

    rows: NDArray[np.intp]  # where the pod fits
    nominated_row: int | None  # the pod's own nominated node if it fits there
    diagnosis: Diagnosis
    narrowing: frozenset[str]


def survey(framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Survey:
    """Filter all nodes, where a scheduling cycle would stop when it has enough; for explanations.

    Raises as `find_feasible` does, except that a pod which fits nowhere is no error once PreFilter is passed.
    """
    rows, narrowing = pre_filter(framework, state, pod, snapshot)
    search = search_rows(framework, state, pod, snapshot, rows, limit=len(snapshot), start=0)
    own = own_node(framework, state, pod, snapshot)
    diagnosis = diagnose(framework, state, pod, snapshot, search, narrowing, own)
    nominated = own.row if own is not None and own.rejection is None else None
    return Survey(search.rows, nominated, diagnosis, frozenset(narrowing))


def pre_filter(
    framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot
) -> tuple[NDArray[np.intp] | None, set[str]]:
    """Return the rows to filter (None: all), and the plugins that left out the others.

    Raises NoNodesError (before any plugin runs), FitError, or AlgorithmError when a plugin failed.
    """
    if not len(snapshot):
        raise NoNodesError()
    narrowed, status, narrowing = framework.run_pre_filter_plugins(state, pod, snapshot)
    if status is None:
        return _narrowed_rows(narrowed, snapshot), narrowing
    if not status.is_rejected:
        raise AlgorithmError(status)
    diagnosis = Diagnosis(
        NodeStatusTable(snapshot, status),
        unschedulable_plugins=set(narrowing),
        pre_filter_message=status.message(),
    )
    diagnosis.add_plugin(status)
    raise FitError(len(snapshot), diagnosis)


def diagnose(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    search: Search,
    narrowing: set[str],
    own: OwnNode | None,
) -> Diagnosis:
    """Return why nodes were rejected, those that PreFilter left out included.

    The own nominated node keeps its rejection where the search left it out. Source: kube-scheduler 1.36,
    evaluateNominatedNode, which fills in the diagnosis of findNodesThatFitPod.
    """
    diagnosis = explain(framework, state, pod, snapshot, search)
    if narrowing:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}]"
        diagnosis.statuses.absent = Status(Code.UnschedulableAndUnresolvable, (text,))
        diagnosis.unschedulable_plugins |= narrowing
    if own is not None and own.rejection is not None and own.rejection.is_rejected:
        diagnosis.add_missing(own.row, own.rejection)
    return diagnosis


def own_node(framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> OwnNode | None:
    """Try the pod's own nominated node, if it has one; other nodes are not tried where it fits."""
    name = pod.pod.status.nominatedNodeName
    if not name:
        return None
    row = snapshot.row_of.get(name)
    if row is None:
        return None
    node = snapshot.nodes[row]
    status = framework.run_search(
        state, lambda: framework.run_filter_plugins_with_nominated_pods(state, pod, node)
    )
    return OwnNode(row, None if is_success(status) else status)


def _narrowed_rows(narrowed: PreFilterResult, snapshot: Snapshot) -> NDArray[np.intp] | None:
    if narrowed.node_names is None:
        return None
    found = (snapshot.row_of.get(name) for name in narrowed.node_names)
    return np.array(sorted(row for row in found if row is not None), dtype=np.intp)


def _stretches(rows: NDArray[np.intp] | None, total: int, start: int, first: int) -> list[Rows]:
    """Return the rows from `start` on and around in stretches: one of `first` rows, then the rest."""
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
    """Return at most `limit` feasible rows of the given ones (None: all), beginning with the start-th."""
    total = len(snapshot) if rows is None else len(rows)
    blocked = _blocked_rows(framework, state, pod, snapshot)
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
        if blocked is not None:
            positions = positions[~blocked[stretch][positions]]
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


def _blocked_rows(
    framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot
) -> NDArray[np.bool_] | None:
    """Return a mask of the rows blocked by nominated pods; None: none is.

    They are those where the pod does not fit beside the pods of equal or higher priority nominated there.
    """
    if not _has_rivals(framework, pod):
        return None
    blocked = np.zeros(len(snapshot), dtype=np.bool_)
    for row, _ in _contended_rejections(framework, state, pod, snapshot):
        blocked[row] = True
    if framework.follows_pods(state):
        return blocked
    contended = framework.contended.copies(pod, snapshot)
    if len(contended.rows):
        everywhere = slice(0, len(contended.rows))
        for _, mask in framework.filter_rows(state, pod, contended.snapshot, everywhere):
            blocked[contended.rows[~mask]] = True
    return blocked


def _has_rivals(framework: Framework, pod: PodInfo) -> bool:
    """Return whether any nominated pod is of equal or higher priority (it may be the pod itself)."""
    highest = framework.nominator.highest_priority()
    return highest is not None and highest >= pod.priority


def _contended_rejections(
    framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot
) -> list[tuple[int, Status]]:
    """Return rejections beside nominated pods that must be found node by node.

    All of them when a plugin has to follow the added pods, else only that of the pod's own nominated node.
    """
    if framework.follows_pods(state):
        rows = framework.contended.rows(pod, snapshot)
    else:
        own_node = framework.nominator.node_of(pod.uid)
        own = snapshot.row_of.get(own_node)
        rows = [] if own is None or not framework.competing_nominations(pod, own_node) else [own]
    rejections = []
    for row in rows:
        status = framework.run_filter_plugins_with_nominated_pods(state, pod, snapshot.nodes[row])
        if status is not None and not status.is_success:
            if not status.is_rejected:
                raise AlgorithmError(status)
            rejections.append((row, status))
    return rejections


def explain(
    framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot, search: Search
) -> Diagnosis:
    """Return why each row was rejected: by the first plugin that rejects it, where upstream stops."""
    table = NodeStatusTable(snapshot)
    diagnosis = Diagnosis(table)
    decided = _explain_contended(framework, state, pod, snapshot, search, diagnosis)
    for stretch, verdicts in search.traces:
        rows = np.arange(stretch.start, stretch.stop) if isinstance(stretch, slice) else stretch
        _explain_rows(state, pod, snapshot, rows, rows, ~decided[rows], verdicts, diagnosis)
    return diagnosis


def _explain_contended(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    search: Search,
    diagnosis: Diagnosis,
) -> NDArray[np.bool_]:
    """Enter the rejections beside nominated pods, which come first; return a mask of those rows."""
    decided = np.zeros(len(snapshot), dtype=np.bool_)
    if not _has_rivals(framework, pod):
        return decided
    searched = np.zeros(len(snapshot), dtype=np.bool_)
    for stretch, _ in search.traces:
        searched[stretch] = True
    for row, status in _contended_rejections(framework, state, pod, snapshot):
        if searched[row]:
            diagnosis.statuses.set_row(row, status)
            diagnosis.add_plugin(status)
            decided[row] = True
    if framework.follows_pods(state):
        return decided
    contended = framework.contended.copies(pod, snapshot)
    if not len(contended.rows):
        return decided
    verdicts = framework.filter_rows(state, pod, contended.snapshot, slice(0, len(contended.rows)))
    own_rows = np.arange(len(contended.rows))
    alive = searched[contended.rows]
    _explain_rows(state, pod, contended.snapshot, own_rows, contended.rows, alive, verdicts, diagnosis)
    for _, mask in verdicts:
        decided[contended.rows[~mask & searched[contended.rows]]] = True
    return decided


def _explain_rows(
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    rows: NDArray[np.intp],
    shown_as: NDArray[np.intp],
    alive: NDArray[np.bool_],
    verdicts: list[tuple[FilterPlugin, NDArray[np.bool_]]],
    diagnosis: Diagnosis,
) -> None:
    """Enter why the rows of a snapshot in `alive` were rejected, under the rows of `shown_as`."""
    alive = alive.copy()
    for plugin, mask in verdicts:
        chosen = alive & ~mask
        alive &= mask
        rejected = rows[chosen]
        if not len(rejected):
            continue
        statuses, index = plugin.explain_all(state, pod, snapshot, rejected)
        named = [status.with_plugin(plugin.name) for status in statuses]
        diagnosis.statuses.set(shown_as[chosen], named, index)
        for status in named:
            diagnosis.add_plugin(status)


def prioritize(
    framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Return the sum of the weighted scores of each feasible row; 1 for all where nothing scores."""
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
