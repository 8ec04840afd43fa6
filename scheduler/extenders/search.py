"""Run a scheduling cycle that calls extenders, as a generator: it yields calls and receives their results.

Pure, like `attempts/pod.py`: the caller does the I/O. Calls that are yielded together may be made at
once; a result is the decoded JSON, or the ExtenderError of a call that failed. Source: kube-scheduler 1.36,
findNodesThatPassExtenders, prioritizeNodes, evaluateNominatedNode; preemption Evaluator, callExtenders.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.attempts import pod as cycle
from nominee.scheduler.attempts.pod import Failed, Scheduled
from nominee.scheduler.configuration.config import Extender
from nominee.scheduler.extenders import wire
from nominee.scheduler.extenders.wire import Call, ExtenderError
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.scheduling import algorithm
from nominee.scheduler.framework.scheduling.algorithm import ScheduleResult
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.preemption.dry_runs.review import REVIEW_KEY, CandidateReview

EXTENDER_NAME: Final = "Extender"  # stands for all of them among the plugins that rejected a pod

Answer = Any  # decoded JSON, or ExtenderError
T = TypeVar("T")
Asking = Generator[Sequence[Call], Sequence[Answer], T]
Int64s = NDArray[np.int64]


def run(
    framework: Framework,
    cache: Cache,
    state: CycleState,
    pod: PodInfo,
    extenders: Sequence[Extender],
    *,
    start: int,
    percentage: int | None,
    rng: random.Random,
) -> Asking[Scheduled | Failed]:
    """Run `cycle.run` with extenders; the snapshot stays as it is while they are called."""
    cache.update_snapshot(framework.snapshot)
    interested = [extender for extender in extenders if wire.is_interested(extender, pod)]
    try:
        result = yield from _schedule(
            framework, state, pod, extenders, interested, start=start, percentage=percentage, rng=rng
        )
    except FitError as error:
        return (yield from _make_room(framework, state, pod, interested, error))
    except Exception as error:  # noqa: BLE001  # plugins come from outside; the pod is retried, the loop lives
        return cycle.failed_without_fit_error(error)
    return cycle.claim(framework, cache, state, pod, result)


def _schedule(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    extenders: Sequence[Extender],
    interested: Sequence[Extender],
    *,
    start: int,
    percentage: int | None,
    rng: random.Random,
) -> Asking[ScheduleResult]:
    snapshot = framework.snapshot
    total = len(snapshot)
    narrowed, narrowing = algorithm.pre_filter(framework, state, pod, snapshot)
    own = algorithm.own_node(framework, state, pod, snapshot)
    own_rejections: dict[int, Status] = {}
    if own is not None and own.rejection is None:
        # One node's Filter and the extenders; what goes wrong there sends the pod to all nodes.
        rows = np.array([own.row], dtype=np.intp)
        try:
            rows = yield from _filter(framework, pod, interested, rows, own_rejections)
        except ExtenderError:
            rows = rows[:0]
        if len(rows):
            return ScheduleResult(snapshot.nodes[own.row].name, 1, 1, start)
    if framework.profile.percentage_of_nodes_to_score is not None:
        percentage = framework.profile.percentage_of_nodes_to_score
    limit = algorithm.num_feasible_nodes_to_find(percentage, total if narrowed is None else len(narrowed))
    asks = any(extender.filter_verb or extender.prioritize_verb for extender in extenders)
    if not asks and not framework.has_score_plugins:
        limit = 1
    search = framework.run_search(
        state,
        lambda: algorithm.search_rows(framework, state, pod, snapshot, narrowed, limit=limit, start=start),
    )
    next_start = (start + search.processed) % total
    rejections: dict[int, Status] = {}
    rows = yield from _filter(framework, pod, interested, search.rows, rejections)
    if not len(rows):
        diagnosis = algorithm.diagnose(framework, state, pod, snapshot, search, narrowing, own)
        for row, status in rejections.items():
            diagnosis.statuses.set_row(row, status)
        for row, status in own_rejections.items():
            diagnosis.add_missing(row, status)
        if len(search.rows):
            # Extenders name no events that could help: any event may.
            diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
        raise FitError(total, diagnosis)
    if len(rows) == 1:
        return ScheduleResult(snapshot.nodes[int(rows[0])].name, search.processed, 1, next_start)
    scores = algorithm.prioritize(framework, state, pod, snapshot, rows)
    scores = scores + (yield from _score(framework, pod, interested, rows))
    best = np.flatnonzero(scores == scores.max())
    pick = int(best[rng.randrange(len(best))]) if len(best) > 1 else int(best[0])
    return ScheduleResult(snapshot.nodes[int(rows[pick])].name, search.processed, len(rows), next_start)


def _filter(
    framework: Framework,
    pod: PodInfo,
    extenders: Sequence[Extender],
    rows: NDArray[np.intp],
    rejections: dict[int, Status],
) -> Asking[NDArray[np.intp]]:
    """Call one extender after another, each with the nodes that the ones before let pass.

    Nodes that they rejected are added to `rejections` by row.

    Raises:
        ExtenderError: one failed that is not ignorable.
    """
    snapshot = framework.snapshot
    for extender in extenders:
        if not len(rows):
            break
        if not extender.filter_verb:
            continue
        nodes = snapshot.nodes_at(rows)
        [answer] = yield [wire.filter_call(extender, pod, nodes)]
        try:
            filtered = wire.read_filtered(extender, _answered(answer), nodes)
        except ExtenderError:
            if extender.ignorable:
                continue
            raise
        for code, reasons in (
            (Code.UnschedulableAndUnresolvable, filtered.unresolvable),
            (Code.Unschedulable, filtered.failed),
        ):
            for name, reason in reasons.items():
                if (row := snapshot.row_of.get(name)) is not None:
                    rejections[row] = Status(code, (reason,))
        rows = np.array([snapshot.row_of[name] for name in filtered.passed], dtype=np.intp)
    return rows


def _score(
    framework: Framework, pod: PodInfo, extenders: Sequence[Extender], rows: NDArray[np.intp]
) -> Asking[Int64s]:
    """Return the sum of the scores that the extenders give each row. One that fails gives none."""
    scorers = [extender for extender in extenders if extender.prioritize_verb]
    total = np.zeros(len(rows), dtype=np.int64)
    if not scorers:
        return total
    nodes = framework.snapshot.nodes_at(rows)
    answers = yield [wire.prioritize_call(extender, pod, nodes) for extender in scorers]
    for extender, answer in zip(scorers, answers, strict=True):
        try:
            scores = wire.read_scores(extender, _answered(answer))
        except ExtenderError:
            continue
        total += np.array([scores.get(node.name, 0) for node in nodes], dtype=np.int64)
    return total


def _make_room(
    framework: Framework, state: CycleState, pod: PodInfo, extenders: Sequence[Extender], error: FitError
) -> Asking[Failed]:
    """Run PostFilter; when preemption has found candidates call the extenders, and go on with the result."""
    reviewers = [extender for extender in extenders if extender.preempt_verb]
    if not reviewers or not framework.post_filter_plugins:
        return cycle.after_no_fit(framework, state, pod, error)
    review = CandidateReview()
    state.write(REVIEW_KEY, review)
    failed = cycle.after_no_fit(framework, state, pod, error)
    if not review.is_asking:
        return failed
    candidates = review.candidates
    for extender in reviewers:
        [answer] = yield [wire.preempt_call(extender, pod, candidates)]
        try:
            candidates = wire.read_candidates(extender, _answered(answer), framework.snapshot)
        except ExtenderError as rejected:
            if extender.ignorable:
                continue
            review.fail(Status.as_error(rejected))
            break
        if not candidates:
            break
    review.answer(candidates)
    return cycle.after_no_fit(framework, state, pod, error)


def _answered(answer: Answer) -> Any:
    if isinstance(answer, ExtenderError):
        raise answer
    return answer
