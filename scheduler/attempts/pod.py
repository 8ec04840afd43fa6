"""Run a scheduling cycle: from a popped pod to a decision, all in memory.

Pure: it changes the cache (assume), the nominator and the plugins' own state (reserve, permit). What has to
be written to the API server is returned as data. Source: kube-scheduler 1.36, schedulingCycle; KEP-1923
(the nominated node first) and KEP-5278 (what a failure does to the nomination).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nominee.scheduler.dispatch.api_calls import PodStatusPatch
from nominee.scheduler.framework.api.status import error_text, is_success
from nominee.scheduler.framework.cluster.cache import Cache, CacheError
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    FilterError,
    NominatingInfo,
    NominatingMode,
    PostFilterResult,
    Status,
)
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.scheduling.algorithm import (
    AlgorithmError,
    NoNodesError,
    ScheduleResult,
    schedule_pod,
)
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import PodInfo

CLEAR_NOMINATION = NominatingInfo(NominatingMode.Override, "")


class Reason(StrEnum):
    """Reasons of the condition PodScheduled=False."""

    UNSCHEDULABLE = "Unschedulable"
    SCHEDULER_ERROR = "SchedulerError"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The pod is assumed on the node and reserved; `waits`: seconds by Permit plugin that said Wait."""

    node_name: str
    evaluated: int
    feasible: int
    next_start: int
    waits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """The pod got no node, or an error occurred.

    `nominating` is what happens to the nomination, None: leave it. Plugin sets name the plugins that
    rejected the pod; empty ones send it to the error backoff. `post_filter` may carry evictions to be done.
    `error` is an unexpected exception, for the log; None where a plugin returned an error status of its
    own.
    """

    reason: Reason
    message: str
    nominating: NominatingInfo | None
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    post_filter: PostFilterResult | None = None
    fit_error: FitError | None = None
    error: BaseException | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterFailure:
    """The consequences of a failed attempt for its pod, beside the events that it waits for from then on.

    `nominating` counts at once, `call` writes it; `is_queued_if_bound`: the pod is requeued even if it has a
    node.
    """

    nominating: NominatingInfo | None
    call: PodStatusPatch | None
    records_event: bool = True
    is_queued_if_bound: bool = False


def run(
    framework: Framework,
    cache: Cache,
    state: CycleState,
    pod: PodInfo,
    *,
    start: int,
    percentage: int | None,
    rng: random.Random,
    nodes: Collection[str] | None = None,
) -> Scheduled | Failed:
    """Run one cycle; update the framework's snapshot first. `nodes`: only these are considered."""
    cache.update_snapshot(framework.snapshot)
    if nodes is not None:
        with framework.within(nodes):
            return _decide(framework, cache, state, pod, start, percentage, rng)
    return _decide(framework, cache, state, pod, start, percentage, rng)


def _decide(
    framework: Framework,
    cache: Cache,
    state: CycleState,
    pod: PodInfo,
    start: int,
    percentage: int | None,
    rng: random.Random,
) -> Scheduled | Failed:
    try:
        result = schedule_pod(
            framework, state, pod, framework.snapshot, start=start, percentage=percentage, rng=rng
        )
    except FitError as error:
        return after_no_fit(framework, state, pod, error)
    except Exception as error:  # noqa: BLE001  # plugins come from outside; the pod is retried, the loop lives
        return failed_without_fit_error(error)
    return claim(framework, cache, state, pod, result)


def failed_without_fit_error(error: Exception) -> Failed:
    """Return the failure when there are no nodes to reject the pod, or an error occurred."""
    if isinstance(error, NoNodesError):
        return Failed(Reason.UNSCHEDULABLE, str(error), CLEAR_NOMINATION)
    if isinstance(error, AlgorithmError):
        return failed_by(error.status)
    cause = error.status.error if isinstance(error, FilterError) else error
    return Failed(Reason.SCHEDULER_ERROR, error_text(error), CLEAR_NOMINATION, error=cause)


def claim(
    framework: Framework, cache: Cache, state: CycleState, pod: PodInfo, result: ScheduleResult
) -> Scheduled | Failed:
    """Assume, reserve, permit; all undone when one of them rejects."""
    node = result.node_name
    try:
        cache.assume_pod(pod, node)
    except CacheError as error:
        return Failed(Reason.SCHEDULER_ERROR, str(error), CLEAR_NOMINATION)
    framework.nominator.delete(pod.uid)
    waits: dict[str, float] = {}
    status = framework.run_reserve_plugins(state, pod, node)
    if is_success(status):
        status, waits = framework.run_permit_plugins(state, pod, node)
    if status is not None and not status.is_success and not status.is_wait:
        framework.run_unreserve_plugins(state, pod, node)
        cache.forget_pod(pod)
        return failed_by(status)
    return Scheduled(node, result.evaluated, result.feasible, result.next_start, waits)


def after_no_fit(framework: Framework, state: CycleState, pod: PodInfo, error: FitError) -> Failed:
    """Return the failure when no node fits; PostFilter may make room."""
    if not framework.post_filter_plugins:
        return _unschedulable(error, CLEAR_NOMINATION, None)
    result, status = framework.run_post_filter_plugins(state, pod, error.diagnosis.statuses)
    error.diagnosis.post_filter_message = status.message()
    return _unschedulable(error, None if result is None else result.nominating_info, result)


def _unschedulable(
    error: FitError, nominating: NominatingInfo | None, result: PostFilterResult | None
) -> Failed:
    diagnosis = error.diagnosis
    return Failed(
        Reason.UNSCHEDULABLE,
        str(error),
        nominating,
        frozenset(diagnosis.unschedulable_plugins),
        frozenset(diagnosis.pending_plugins),
        result,
        error,
    )


def eviction_failed(failed: Failed, status: Status) -> Failed:
    """Return the failure when evictions failed, instead of PostFilter's; nothing is nominated."""
    if failed.fit_error is None:
        return failed
    failed.fit_error.diagnosis.post_filter_message = status.message()
    return _unschedulable(failed.fit_error, None, None)


def failed_by(status: Status) -> Failed:
    """Return the failure of a plugin after a node was chosen; a rejection counts as that of the only node.

    A pod that was removed while it waited on Permit is rejected by a plugin without a name: no event concerns
    it, and it does not count as an error (kube-scheduler 1.36, bindingCycle and RejectWaitingPod).
    """
    if not status.is_rejected:
        return Failed(Reason.SCHEDULER_ERROR, status.message(), CLEAR_NOMINATION, error=status.error)
    reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
    named = frozenset({status.plugin})
    is_pending = status.code is Code.Pending
    return Failed(
        Reason.UNSCHEDULABLE,
        f"0/1 nodes are available: {reasons}." if reasons else "0/1 nodes are available:",
        CLEAR_NOMINATION,
        frozenset() if is_pending else named,
        named if is_pending else frozenset(),
    )


def after_failure(pod: PodInfo, failed: Failed, *, keeps_nominations: bool) -> AfterFailure:
    """Return the consequences of a failed attempt at a pending pod: PodScheduled=False and its nomination."""
    nominating = nomination_after(failed.nominating, keeps_nominations=keeps_nominations)
    call = PodStatusPatch(
        pod=pod.pod, reason=failed.reason.value, message=failed.message, nominating=nominating
    )
    return AfterFailure(nominating=nominating, call=call)


def nomination_after(nominating: NominatingInfo | None, *, keeps_nominations: bool) -> NominatingInfo | None:
    """Return the change of the nomination by a failure under the feature gates.

    `keeps_nominations`: the rule of 1.34 with NominatedNodeNameForExpectation on, where the scheduler moves
    a nomination but never clears it (KEP-5278, Alternatives).
    """
    if keeps_nominations and nominating is not None and not nominating.node_name:
        return None
    return nominating
