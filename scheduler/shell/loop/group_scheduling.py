"""Try the pods of a pod group together: collect their attempts and run the group's scheduling cycle.

Source: KEP-4671, KEP-5732; kube-scheduler 1.36, pod group scheduling cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio.abc

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.runtime.failpoints import FailpointError
from nominee.scheduler.attempts import group as group_cycle
from nominee.scheduler.attempts.group import Verdict, group_to_try
from nominee.scheduler.attempts.placements import Placement, PlacementError, topology_key
from nominee.scheduler.attempts.placements import placements as placements_of
from nominee.scheduler.attempts.pod import CLEAR_NOMINATION, Failed, Reason, Scheduled
from nominee.scheduler.features import SchedulerFeatures
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.types import QueuedPodInfo
from nominee.scheduler.shell.attempt.attempt import Attempt
from nominee.scheduler.shell.calls import failpoints as steps
from nominee.scheduler.shell.calls.group_status import GroupConditions
from nominee.scheduler.shell.loop.deps import SchedulerDeps


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """The result of a group's cycle; `verdict` None: it could not be tried."""

    key: ObjectKey
    outcomes: Sequence[tuple[Attempt, Scheduled | Failed]]
    next_start: int
    verdict: Verdict | None = None


class GroupScheduling:
    """Decides on pod groups and has their conditions written."""

    def __init__(self, features: SchedulerFeatures, deps: SchedulerDeps) -> None:
        self._features = features
        self._deps = deps
        self._conditions = GroupConditions(deps.client, deps.clock)

    async def decide(
        self,
        first: Attempt,
        attempt_at: Callable[[QueuedPodInfo], Attempt | None],
        begin_binding: Callable[[Attempt, Scheduled], None],
        *,
        start: int,
    ) -> GroupOutcome:
        """Try the pod and every other one of its group that can be popped; `start`: row to begin with.

        `attempt_at` makes an attempt of a popped pod, `begin_binding` starts the binding cycle of one that
        was placed: the Permit of a later pod may let it go on.
        """
        deps = self._deps
        key = group_to_try(first.pod.pod)
        assert key is not None
        attempts = self._collect(first, key, attempt_at)
        error = _scheduler_names_differ(attempts)
        try:
            await steps.CYCLE_BEFORE.hit(pod=first.pod.key)
        except (StatusError, FailpointError) as failure:
            error = str(failure)
        if error:
            failed = Failed(Reason.SCHEDULER_ERROR, error, CLEAR_NOMINATION)
            return GroupOutcome(key, [(attempt, failed) for attempt in attempts], start)
        verdict = self._verdict(first.framework, key, attempts, begin_binding, start)
        seconds = deps.clock.monotonic() - first.started
        deps.metrics.group_decided(verdict.result, first.framework.profile_name, seconds)
        outcomes = list(zip(attempts, verdict.outcomes, strict=True))
        for attempt, outcome in outcomes:
            deps.attempts.decided(attempt.pod, outcome)
        return GroupOutcome(key, outcomes, verdict.next_start, verdict)

    def _verdict(
        self,
        framework: Framework,
        key: ObjectKey,
        attempts: Sequence[Attempt],
        begin_binding: Callable[[Attempt, Scheduled], None],
        start: int,
    ) -> Verdict:
        """Run the group's cycle, unless there are no placements to try because of an error."""
        deps = self._deps
        try:
            placements = self._placements(framework, key)
        except PlacementError as error:
            failed = Failed(Reason.SCHEDULER_ERROR, str(error), CLEAR_NOMINATION)
            return Verdict(False, False, str(error), [failed] * len(attempts), start)

        def placed(index: int, state: CycleState, outcome: Scheduled) -> None:
            attempts[index].state = state
            begin_binding(attempts[index], outcome)

        with deps.groups.trying({attempt.pod.uid for attempt in attempts}):
            return group_cycle.run(
                framework,
                deps.cache,
                [group_cycle.Member(attempt.pod, attempt.state) for attempt in attempts],
                start=start,
                percentage=deps.percentage_of_nodes_to_score,
                rng=deps.rng,
                placed=placed,
                placements=placements,
            )

    def write_condition(self, first: Attempt, decided: GroupOutcome, group: anyio.abc.TaskGroup) -> None:
        """Have the group's condition written by a task."""
        if decided.verdict is not None:
            self._conditions.decided(first.framework, decided.key, decided.verdict, group)

    def _collect(
        self, first: Attempt, key: ObjectKey, attempt_at: Callable[[QueuedPodInfo], Attempt | None]
    ) -> list[Attempt]:
        """Return the attempts at all pods of the group, by priority and then by first attempt."""
        attempts = [first]
        for other in self._deps.groups.unscheduled(key):
            if other.metadata.uid == first.pod.uid:
                continue
            info = self._deps.queue.pop_specific(key_of(other))
            attempt = None if info is None else attempt_at(info)
            if attempt is not None:
                attempts.append(attempt)
        attempts.sort(key=lambda a: (-a.pod.priority, a.info.initial_attempt_timestamp or 0.0))
        return attempts

    def _placements(self, framework: Framework, key: ObjectKey) -> list[Placement] | None:
        """Return the placements to try the group in; None: the topology does not count.

        Raises:
            PlacementError: the group's topology constraints cannot be used.
        """
        if not self._features.placements:
            return None
        deps = self._deps
        deps.cache.update_snapshot(framework.snapshot)
        group = framework.lister(kinds.POD_GROUP).get(key.name, key.namespace)
        members = deps.groups.members(key).items()
        nodes = ((key_of(pod), pod.spec.nodeName or deps.cache.node_of(uid)) for uid, pod in members)
        scheduled = [(pod, node) for pod, node in nodes if node]
        return placements_of(topology_key(group), framework.snapshot, scheduled)


def _scheduler_names_differ(attempts: Sequence[Attempt]) -> str:
    """Return the error of a group whose pods name several schedulers, or ""."""
    names = [attempt.pod.pod.spec.schedulerName for attempt in attempts]
    for name in names:
        if name != names[0]:
            text = "all pods in a single pod group should have the same .spec.schedulerName set, got: "
            return f'{text}"{name}" and "{names[0]}"'
    return ""
