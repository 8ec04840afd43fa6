"""Decide a preemption: from the statuses of the filters to a candidate, without doing anything.

Source: kube-scheduler 1.36, preemption Evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nominee.machinery.api import kinds
from nominee.machinery.api.names import aggregate
from nominee.scheduler.framework.api.deferred_resize import is_deferred_resize
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Candidate, Code, Handle, NodeStatuses, Status
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.preemption.budgets import read_budgets
from nominee.scheduler.preemption.dry_runs.dry_run import DryRun, dry_run
from nominee.scheduler.preemption.dry_runs.review import PAUSED, REVIEW_KEY, CandidateReview
from nominee.scheduler.preemption.eligibility import nominated_node, why_not_eligible
from nominee.scheduler.preemption.selection import best_candidates
from nominee.scheduler.preemption.victim_groups import VictimGroups

NOT_HELPFUL = "Preemption is not helpful for scheduling"


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a preemption.

    With a `candidate`: evict its victims. Without one `status` has the reason; `clears_nomination`: a
    nomination that the pod still has is void. `best` are all candidates as good as the chosen one.
    """

    candidate: Candidate | None
    status: Status | None
    clears_nomination: bool = False
    candidates: tuple[Candidate, ...] = ()
    best: tuple[Candidate, ...] = ()
    node_statuses: Mapping[str, Status] | None = None
    chosen_by: str = ""
    """The criterion that decided between the candidates, in words."""


def num_candidates(nodes: int, percentage: int, absolute: int) -> int:
    """Return how many candidates are enough: a percentage of the nodes, at least `absolute`, at most all."""
    return min(max(nodes * percentage // 100, absolute), nodes)


def decide(
    handle: Handle,
    state: CycleState,
    pod: PodInfo,
    statuses: NodeStatuses,
    *,
    percentage: int,
    absolute: int,
) -> Decision:
    """Decide whom to evict from which node."""
    snapshot = handle.snapshot
    now = handle.clock.now()
    review: CandidateReview | None = state.get(REVIEW_KEY)
    if review is not None and review.is_answered:
        return _after_review(review, now)
    nominated = nominated_node(pod, handle.resize_preemption)
    reason = why_not_eligible(pod, nominated, statuses.get(nominated), snapshot)
    if reason:
        return Decision(None, Status(Code.Unschedulable, (reason,)))
    if not len(snapshot):
        return Decision(None, Status(Code.Error, ("no nodes available",)))
    nodes = statuses.nodes_with_code(snapshot, Code.Unschedulable)
    run = DryRun([], {})
    resizes = handle.resize_preemption is not None and is_deferred_resize(pod.pod)
    groups = VictimGroups(handle) if resizes else None
    if nodes:
        budgets = read_budgets(handle.lister(kinds.POD_DISRUPTION_BUDGET).list())
        run = dry_run(
            handle,
            state,
            pod,
            nodes,
            budgets,
            offset=handle.rng.randrange(len(nodes)),
            num_candidates=num_candidates(len(nodes), percentage, absolute),
            now=now,
            groups=groups,
        )
    if not run.candidates:
        failed = [status for status in run.statuses.values() if not status.is_rejected]
        if failed:
            return Decision(None, _all_of(failed), node_statuses=run.statuses)
        status = Status(Code.Unschedulable, (_nothing_found(run.statuses, len(snapshot)),))
        return Decision(None, status, clears_nomination=True, node_statuses=run.statuses)
    if review is not None:
        review.ask(run.candidates, run.statuses)
        return Decision(None, PAUSED)
    best, words = best_candidates(run.candidates, now)
    chosen = best[0] if groups is None else groups.own_node_last(best[0])
    return Decision(chosen, None, False, tuple(run.candidates), tuple(best), run.statuses, words)


def _after_review(review: CandidateReview, now: float) -> Decision:
    """Choose among the candidates that extenders left."""
    if review.failure is not None:
        return Decision(None, review.failure, node_statuses=review.statuses)
    best, words = best_candidates(review.candidates, now)
    if not best:
        status = Status(Code.Unschedulable, ("no candidate node for preemption",))
        return Decision(None, status, node_statuses=review.statuses)
    return Decision(best[0], None, False, tuple(review.candidates), tuple(best), review.statuses, words)


def _all_of(failed: Sequence[Status]) -> Status:
    """Return the errors of several nodes as one, in the order in which the nodes were tried.

    Source: kube-scheduler 1.36, DryRunPreemption, which aggregates them.
    """
    text = aggregate(status.message() for status in failed)
    return Status(Code.Error, (text,), failed[0].plugin, failed[0].error)


def _nothing_found(statuses: Mapping[str, Status], total: int) -> str:
    """Return a message like `0/3 nodes are available: 3 Preemption is not helpful for scheduling.`."""
    counts: dict[str, int] = {}
    for status in statuses.values():
        for reason in status.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    rest = total - len(statuses)
    if rest > 0:
        counts[NOT_HELPFUL] = counts.get(NOT_HELPFUL, 0) + rest
    reasons: Sequence[str] = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{total} nodes are available: {', '.join(reasons)}."
