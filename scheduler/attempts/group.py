"""Run the scheduling cycle of a pod group: all its pods are tried, and enough of them go on or none does.

Pure as `cycle` is. Each pod is tried as if those before it had their nodes; everything is taken back at the
end, and done again for good if the group as a whole can be placed. A group that must be in one domain of a
topology is tried in each, and goes where most of its pods find room. Source: KEP-4671, KEP-5732;
kube-scheduler 1.36, pod group scheduling cycle, PodGroupPodsCount.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.scheduler.attempts import pod as cycle
from nominee.scheduler.attempts.placements import EVERYWHERE, Placement
from nominee.scheduler.attempts.pod import CLEAR_NOMINATION, Failed, Reason, Scheduled
from nominee.scheduler.attempts.resize import is_resize
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.scheduling_groups import group_of
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import NominatingInfo, NominatingMode
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.scheduling.algorithm import ScheduleResult
from nominee.scheduler.framework.types import PodInfo

UNSCHEDULABLE_GROUP: Final = "pod group is unschedulable"
WAITING_FOR_PREEMPTION: Final = f"{UNSCHEDULABLE_GROUP}, pod group is waiting for preemption to complete"


@dataclass(slots=True)
class Member:
    """A pod of the group, and the result of its attempt."""

    pod: PodInfo
    state: CycleState
    found: Scheduled | None = None  # a node, perhaps after an eviction
    failed: Failed | None = None  # why it has none, or (with `found`) that it needs an eviction

    @property
    def needs_eviction(self) -> bool:
        return self.found is not None and self.failed is not None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a group: `error` if one occurred, else whether its pods may go on.

    `waits_for_evictions`: they may as soon as victims are deleted. `outcomes`: of each member, in order.
    """

    is_placed: bool
    waits_for_evictions: bool
    error: str
    outcomes: Sequence[Scheduled | Failed]
    next_start: int
    rejection: str = UNSCHEDULABLE_GROUP

    @property
    def result(self) -> str:
        """Return the result as metrics label it."""
        if self.error:
            return "error"
        if self.is_placed:
            return "scheduled"
        return "waiting_on_preemption" if self.waits_for_evictions else "unschedulable"

    @property
    def message(self) -> str:
        """Return the message of the group's condition."""
        if self.error:
            return self.error
        if self.is_placed:
            return ""
        return WAITING_FOR_PREEMPTION if self.waits_for_evictions else self.rejection


@dataclass(slots=True)
class _Attempt:
    """The results of the members in one placement."""

    members: Sequence[Member]
    is_placed: bool = False
    waits: bool = False
    error: str = ""

    @property
    def placed_count(self) -> int:
        return sum(member.found is not None for member in self.members)


def group_to_try(pod: core.Pod) -> ObjectKey | None:
    """Return the group that the pod is tried with; a member with a deferred resize is tried alone."""
    return None if is_resize(pod) else group_of(pod)


def run(
    framework: Framework,
    cache: Cache,
    members: Sequence[Member],
    *,
    start: int,
    percentage: int | None,
    rng: random.Random,
    placed: Callable[[int, CycleState, Scheduled], None],
    placements: Sequence[Placement] | None = None,
) -> Verdict:
    """Run one cycle. Pods that go on are assumed, reserved and permitted when this returns; others are not.

    `placed` is called for each of them (by its place among the members, with what its plugins wrote into
    the state) as soon as it is: the Permit of one after it may let it go on. `placements`: None ignores
    topology.
    """
    attempts: list[_Attempt] = []
    for placement in (EVERYWHERE,) if placements is None else placements:
        own = members if not attempts else [_fresh(member) for member in members]
        attempt, start = _try_all(framework, cache, own, placement, start, percentage, rng)
        attempts.append(attempt)
        if attempt.error:
            break
    rejection = UNSCHEDULABLE_GROUP
    if placements is not None:
        count = f"0/{len(placements)} placements are available"
        rejection = f"{count}, first placement status: {UNSCHEDULABLE_GROUP}" if placements else count
    chosen = _chosen(attempts, rng) if attempts else _Attempt(members, error="")
    rejectors = _rejectors_of(chosen.members)
    outcomes: list[Scheduled | Failed] = []
    for index, member in enumerate(chosen.members):
        outcome = _outcome(framework, cache, member, chosen, rejectors, rejection)
        if isinstance(outcome, Scheduled):
            placed(index, member.state, outcome)
        outcomes.append(outcome)
    return Verdict(chosen.is_placed, chosen.waits, chosen.error, outcomes, start, rejection)


def _fresh(member: Member) -> Member:
    return Member(member.pod, CycleState(member.state.hooks))


def _chosen(attempts: Sequence[_Attempt], rng: random.Random) -> _Attempt:
    """Return an attempt with an error; else, of those with room, the one with most pods; else the first."""
    if attempts[-1].error:
        return attempts[-1]
    good = [attempt for attempt in attempts if attempt.is_placed or attempt.waits]
    if not good:
        return attempts[0]
    most = max(attempt.placed_count for attempt in good)
    best = [attempt for attempt in good if attempt.placed_count == most]
    return best[rng.randrange(len(best))] if len(best) > 1 else best[0]


def _try_all(
    framework: Framework,
    cache: Cache,
    members: Sequence[Member],
    placement: Placement,
    start: int,
    percentage: int | None,
    rng: random.Random,
) -> tuple[_Attempt, int]:
    """Try one placement; return the attempt and where the next search begins. Nothing stays taken."""
    attempt = _Attempt(members)
    needs_eviction = False
    for member in members:
        start = _try(framework, cache, member, placement, start=start, percentage=percentage, rng=rng)
        if member.found is None:
            assert member.failed is not None
            if member.failed.reason is Reason.SCHEDULER_ERROR:
                attempt.error = f"failed to schedule other pod from a pod group: {member.failed.message}"
                break
            continue
        needs_eviction = needs_eviction or member.needs_eviction
        if not member.found.waits:
            attempt.is_placed, attempt.waits = not needs_eviction, needs_eviction
    for member in reversed(members):
        if member.found is not None:
            _take_back(framework, cache, member)
    if attempt.error:
        attempt.is_placed = attempt.waits = False
    return attempt, start


def _try(
    framework: Framework,
    cache: Cache,
    member: Member,
    placement: Placement,
    *,
    start: int,
    percentage: int | None,
    rng: random.Random,
) -> int:
    """Fill in the member's result; return where the next search begins."""
    outcome = cycle.run(
        framework,
        cache,
        member.state,
        member.pod,
        start=start,
        percentage=percentage,
        rng=rng,
        nodes=placement.nodes,
    )
    if isinstance(outcome, Scheduled):
        member.found = outcome
        return outcome.next_start
    member.failed = outcome
    node = "" if outcome.nominating is None else outcome.nominating.node_name
    if node:
        # The members after it must see it there, as if its victims were deleted.
        claimed = cycle.claim(framework, cache, member.state, member.pod, ScheduleResult(node, 0, 0, start))
        if isinstance(claimed, Scheduled):
            member.found = claimed
        else:
            member.failed = claimed
    return start


def _take_back(framework: Framework, cache: Cache, member: Member) -> None:
    assert member.found is not None
    framework.run_unreserve_plugins(member.state, member.pod, member.found.node_name)
    cache.forget_pod(member.pod)


def _rejectors_of(members: Sequence[Member]) -> frozenset[str]:
    """Return the plugins for which the members wait: of Permit, and those that rejected some of them."""
    waited = (name for member in members if member.found is not None for name in member.found.waits)
    rejected = (member.failed.unschedulable_plugins for member in members if member.failed is not None)
    return frozenset(waited).union(*rejected)


def _outcome(
    framework: Framework,
    cache: Cache,
    member: Member,
    attempt: _Attempt,
    rejectors: frozenset[str],
    rejection: str,
) -> Scheduled | Failed:
    """Return the outcome for one pod."""
    found, failed, error = member.found, member.failed, attempt.error
    if error:
        if found is None and failed is not None and failed.reason is Reason.SCHEDULER_ERROR:
            return failed
        return Failed(Reason.SCHEDULER_ERROR, error, CLEAR_NOMINATION)
    if found is None:
        # Nothing was tried where there is no placement at all.
        return failed or Failed(Reason.UNSCHEDULABLE, rejection, CLEAR_NOMINATION, rejectors)
    if failed is not None:
        return failed if attempt.waits else _rejected(member)
    if attempt.is_placed:
        again = ScheduleResult(found.node_name, found.evaluated, found.feasible, found.next_start)
        return cycle.claim(framework, cache, member.state, member.pod, again)
    if attempt.waits:
        nomination = NominatingInfo(NominatingMode.Override, found.node_name)
        return Failed(Reason.UNSCHEDULABLE, WAITING_FOR_PREEMPTION, nomination, rejectors)
    return _rejected(member)


def _rejected(member: Member) -> Failed:
    """Return the failure of a pod that has a node, or would after an eviction, while its group has not.

    Nothing is evicted for it (KEP-4671, delayed preemption), and it waits for the events of the plugins
    that held it at Permit. Upstream's 1.36 has begun the eviction by now, and tries such pods again
    whenever their backoff is over, as after an error.
    """
    assert member.found is not None
    text = f'one or more plugins asked to wait and no plugin rejected pod "{member.pod.name}"'
    held_by = frozenset(member.found.waits)
    return Failed(Reason.UNSCHEDULABLE, f"{UNSCHEDULABLE_GROUP}, {text}", CLEAR_NOMINATION, held_by)
