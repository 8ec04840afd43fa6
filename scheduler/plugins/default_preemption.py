"""DefaultPreemption: evict pods of lower priority to make room. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from google.protobuf.message import Message

from nominee.scheduler.attempts.resize import own_node
from nominee.scheduler.framework.api.deferred_resize import is_deferred_resize
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    on,
)
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    Handle,
    NodeStatuses,
    NominatingInfo,
    NominatingMode,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    Status,
)
from nominee.scheduler.framework.resize_preemption import Tracking
from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.preemption.chosen_victims import ChosenVictims
from nominee.scheduler.preemption.dry_runs.review import REVIEW_KEY
from nominee.scheduler.preemption.eligibility import VICTIM_TERMINATING
from nominee.scheduler.preemption.evaluator import Decision, decide
from nominee.scheduler.preemption.evictions import Evictions

CANDIDATES_PERCENTAGE_MIN = 10
CANDIDATES_ABSOLUTE_MIN = 100


class DefaultPreemption(PostFilterPlugin, PreEnqueuePlugin, EnqueueExtensions):
    """Arguments: `minCandidateNodesPercentage` (10), `minCandidateNodesAbsolute` (100)."""

    name = "DefaultPreemption"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._percentage = args.get("minCandidateNodesPercentage", CANDIDATES_PERCENTAGE_MIN)
        self._absolute = args.get("minCandidateNodesAbsolute", CANDIDATES_ABSOLUTE_MIN)
        if not 0 <= self._percentage <= 100:
            text = f"Invalid value: {self._percentage}: not in valid range [0, 100]"
            raise ArgumentError("minCandidateNodesPercentage", text)
        if self._absolute < 0:
            text = f"Invalid value: {self._absolute}: not in valid range [0, inf)"
            raise ArgumentError("minCandidateNodesAbsolute", text)
        if not self._percentage and not self._absolute:
            text = "Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute"
            raise ArgumentError("minCandidateNodesPercentage", text)
        self._handle = handle
        self._asynchronous = handle.gates.enabled("SchedulerAsyncPreemption")
        self.evictions = Evictions(handle, self.name)
        self._chosen = ChosenVictims()
        self.attempts = 0  # calls of PostFilter; for the metric

    def decide(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> Decision:
        """Return the decision of `post_filter`, without beginning it (for explanations and tests)."""
        return decide(
            self._handle, state, pod, statuses, percentage=self._percentage, absolute=self._absolute
        )

    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        review = state.get(REVIEW_KEY)
        if review is None or not review.is_answered:  # else the same attempt goes on
            self.attempts += 1
        in_memory = self._is_tracked_in_memory(pod)
        own = self._handle.snapshot.get(own_node(pod.pod))
        if in_memory and self._chosen.are_terminating(pod, own):
            return None, Status(Code.Unschedulable, (f"preemption: {VICTIM_TERMINATING}",), self.name)
        decision = self.decide(state, pod, statuses)
        if decision.candidate is None:
            status = decision.status
            assert status is not None
            status = Status(status.code, (f"preemption: {status.message()}",), self.name, status.error)
            if not decision.clears_nomination:
                return None, status
            return PostFilterResult(NominatingInfo(NominatingMode.Override, "")), status
        candidate = decision.candidate
        if in_memory:
            self._chosen.note(pod, candidate.victims)
        nomination = NominatingInfo(NominatingMode.Override, candidate.node)
        if not self._asynchronous:
            follow_up = partial(self.evictions.before_requeueing, candidate, pod)
            return PostFilterResult(nomination, candidate, follow_up, chosen_by=decision.chosen_by), None
        if all(victim.is_terminating for victim in candidate.victims):
            return PostFilterResult(nomination, candidate), None  # nothing is left to be done
        background = partial(self.evictions.in_background, candidate, pod)
        begin = partial(self.evictions.begin, pod)
        result = PostFilterResult(
            nomination, candidate, background, background=True, begin=begin, chosen_by=decision.chosen_by
        )
        return result, None

    def _is_tracked_in_memory(self, pod: PodInfo) -> bool:
        """Return whether this is a deferred resize whose victims are kept in memory (KEP-5836, Option 2)."""
        options = self._handle.resize_preemption
        return options is not None and options.tracking is Tracking.MEMORY and is_deferred_resize(pod.pod)

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        if not self._asynchronous or not self.evictions.is_preempting(pod.uid):
            return None
        text = "waiting for the preemption for this pod to be finished"
        return Status(Code.UnschedulableAndUnresolvable, (text,), self.name)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        if not self._asynchronous:
            return ()  # PreEnqueue never rejects then
        return (on(EventResource.Pod, ActionType.Delete, self._after_pod_deleted),)

    def _after_pod_deleted(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        """Return Skip: the plugins whose rejections preemption resolves decide when to try again."""
        return QueueingHint.Skip
