"""Carrying a preemption out: clear lower nominations, mark and delete the victims, tell people.

Source: KEP-4832; kube-scheduler 1.36, preemption Executor. Asynchronous preemption keeps the preemptor out of
the queue (PreEnqueue) until its last victim's deletion has begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio

from machinery import failpoints, kinds
from machinery.clock import to_time
from machinery.errors import StatusError, is_not_found
from machinery.objects import ObjectKey, get_condition, set_condition
from machinery.pb import core
from machinery.strategic_diff import diff_strategic
from machinery.wire import codec
from scheduler.framework.interface import Candidate, Handle, Status
from scheduler.framework.types import PodInfo
from scheduler.preemption.eligibility import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER

PARALLEL_MAX = 16
_FAILURES = (StatusError, failpoints.FailpointError)

BEFORE = failpoints.declare("scheduler.preempt.before")
VICTIM_MARKED = failpoints.declare("scheduler.preempt.victim.marked")
VICTIM_AFTER = failpoints.declare("scheduler.preempt.victim.after")


class Executor:
    """Evictions that are under way, by preemptor."""

    def __init__(self, handle: Handle, plugin: str) -> None:
        self._handle = handle
        self._plugin = plugin
        self._preempting: dict[str, ObjectKey | None] = {}  # uid: the last victim, once it is its turn

    # What the queue asks

    def is_preempting(self, uid: str) -> bool:
        """Whether evictions for this pod still run.

        Once the last victim's deletion has begun the answer is no, although the call may not have returned:
        else the preemptor could miss the event of its victim's end.
        """
        if uid not in self._preempting:
            return False
        last = self._preempting[uid]
        if last is None:
            return True
        victim = self._handle.lister(kinds.POD).get(last.name, last.namespace)
        return victim is not None and not victim.metadata.HasField("deletionTimestamp")

    def begin(self, pod: PodInfo) -> None:
        """The pod's evictions are about to start in the background."""
        self._preempting[pod.uid] = None

    # What the shell runs

    async def run_in_background(self, candidate: Candidate, pod: PodInfo) -> None:
        """Everything for one candidate; never raises for a refused request.

        Call `begin` first. On an error the preemptor goes back to the active queue, or it could wait for an
        event that never comes.
        """
        victims = [victim for victim in candidate.victims if not victim.is_terminating]
        failed = False
        try:
            await BEFORE.hit(pod=str(pod.key), node=candidate.node)
            failed = not await self._clear_lower_nominations(candidate, pod)
            error = await self._evict_all(candidate, pod, victims[:-1])
            if error is None and victims:
                self._preempting[pod.uid] = victims[-1].key
                error = await self._evict_all(candidate, pod, victims[-1:])
            failed = failed or error is not None
        except _FAILURES:
            failed = True
        finally:
            self._preempting.pop(pod.uid, None)
        if failed:
            self._handle.activate({str(pod.key): pod.pod})

    async def run(self, candidate: Candidate, pod: PodInfo) -> Status | None:
        """The same before the cycle ends (SchedulerAsyncPreemption off); the first error, or None."""
        try:
            await BEFORE.hit(pod=str(pod.key), node=candidate.node)
        except _FAILURES as refused:
            return Status.as_error(refused, self._plugin)
        victims = [victim for victim in candidate.victims if not victim.is_terminating]
        error = await self._evict_all(candidate, pod, victims)
        if error is not None:
            return Status.as_error(error, self._plugin)
        await self._clear_lower_nominations(candidate, pod)
        return None

    async def _evict_all(
        self, candidate: Candidate, pod: PodInfo, victims: Iterable[PodInfo]
    ) -> Exception | None:
        """All at once, a bounded number at a time; the first error."""
        errors: list[Exception] = []
        limiter = anyio.CapacityLimiter(PARALLEL_MAX)

        async def evict(victim: PodInfo) -> None:
            async with limiter:
                if errors:
                    return
                try:
                    await self._evict(candidate, pod, victim)
                except _FAILURES as error:
                    errors.append(error)

        async with anyio.create_task_group() as group:
            for victim in victims:
                group.start_soon(evict, victim)
        return errors[0] if errors else None

    async def _evict(self, candidate: Candidate, pod: PodInfo, victim: PodInfo) -> None:
        """A victim that only waits on Permit is rejected there; any other is marked and deleted."""
        waiting = self._handle.waiting_pod(victim.uid)
        if waiting is not None:
            waiting.reject(self._plugin, "preempted")
        else:
            client = self._handle.client
            try:
                patch = self._mark(pod, victim)
                if patch:
                    await client.patch(kinds.POD, victim.name, victim.namespace, patch, subresource="status")
                await VICTIM_MARKED.hit(pod=str(pod.key), victim=str(victim.key))
                await client.delete(kinds.POD, victim.name, victim.namespace)
            except StatusError as error:
                if is_not_found(error):
                    return  # gone already: all the better
                raise
        await VICTIM_AFTER.hit(pod=str(pod.key), victim=str(victim.key))
        if self._handle.recorder is not None:
            self._handle.recorder.event(
                victim.pod,
                "Normal",
                "Preempted",
                action="Preempting",
                note=f"Preempted by pod {pod.uid} on node {candidate.node}",
                related=pod.pod,
            )

    def _mark(self, pod: PodInfo, victim: PodInfo) -> dict[str, Any]:
        """The patch that adds the DisruptionTarget condition; empty if it is there."""
        status = core.PodStatus()
        status.CopyFrom(victim.pod.status)
        condition = core.PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=f"{pod.pod.spec.schedulerName}: preempting to accommodate a higher priority pod",
        )
        former = get_condition(status.conditions, DISRUPTION_TARGET)
        observed = former is not None and former.observedGeneration
        if observed or self._handle.gates.enabled("PodObservedGenerationTracking"):
            condition.observedGeneration = victim.pod.metadata.generation
        if not set_condition(status.conditions, condition, to_time(self._handle.clock.now())):
            return {}
        return _status_patch(victim.pod.status, status)

    async def _clear_lower_nominations(self, candidate: Candidate, pod: PodInfo) -> bool:
        """Pods of lower priority nominated to the node may not fit any more: let them look elsewhere."""
        done = True
        for other in self._handle.nominator.pods_on(candidate.node):
            if other.priority >= pod.priority or not other.pod.status.nominatedNodeName:
                continue
            status = core.PodStatus()
            status.CopyFrom(other.pod.status)
            status.ClearField("nominatedNodeName")
            patch = _status_patch(other.pod.status, status)
            try:
                await self._handle.client.patch(
                    kinds.POD, other.name, other.namespace, patch, subresource="status"
                )
            except StatusError:
                done = False
        return done


def _status_patch(old: core.PodStatus, new: core.PodStatus) -> dict[str, Any]:
    return diff_strategic(
        core.Pod.DESCRIPTOR.full_name,
        {"status": codec.to_json(old)},
        {"status": codec.to_json(new)},
    )
