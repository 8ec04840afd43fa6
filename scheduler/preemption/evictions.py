"""Carry out a preemption: clear lower nominations, mark and delete the victims, record events.

The steps are data (`io_steps`). Asynchronous preemption keeps the preemptor out of the queue (PreEnqueue)
until its last victim's deletion has begun. Source: KEP-4832; kube-scheduler 1.36, preemption Executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import FailpointError, StatusError, is_not_found
from nominee.machinery.api.objects import ObjectKey, get_condition, set_condition
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.patch.strategic_diff import diff_strategic
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire import codec
from nominee.scheduler.framework.api.io_steps import (
    ClearNomination,
    Concurrently,
    Delete,
    Failpoint,
    IoSteps,
    Patch,
    Sleep,
)
from nominee.scheduler.framework.api.status import error_text
from nominee.scheduler.framework.interface import Candidate, Code, Handle, Status
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.preemption.eligibility import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER

PARALLEL_MAX: Final = 16
RETRY_SECONDS: Final = 0.1
"""Until a preemptor whose evictions failed is tried again: five requests of a client with kube-api-qps 50."""
MARK_RETRY_SECONDS: Final = (0.01, 0.05, 0.25)
"""Before each further attempt at the patch of a victim: client-go's retry.DefaultBackoff, without jitter."""
RETRIABLE: Final = frozenset(("InternalError", "ServiceUnavailable", "Conflict"))
"""Reasons of errors after which the patch is sent again; a refused connection is ServiceUnavailable."""
IN_MEMORY_SINCE: Final = Version(1, 36)
"""Events say whether a victim was only stopped."""
BEFORE: Final = "scheduler.preempt.before"
VICTIM_MARKED: Final = "scheduler.preempt.victim.marked"
VICTIM_AFTER: Final = "scheduler.preempt.victim.after"
_FAILURES: Final = (StatusError, FailpointError)


class Evictions:
    """The evictions that are under way, by preemptor."""

    def __init__(self, handle: Handle, plugin: str) -> None:
        self._handle = handle
        self._plugin = plugin
        self._preempting: dict[str, ObjectKey | None] = {}  # uid: the last victim, once its turn has come

    def is_preempting(self, uid: str) -> bool:
        """Return whether evictions for this pod still run.

        Once the last victim's deletion has begun they do not, although the call may not have returned: else
        the preemptor could miss the event of its victim's end.
        """
        if uid not in self._preempting:
            return False
        last = self._preempting[uid]
        if last is None:
            return True
        victim = self._handle.lister(kinds.POD).get(last.name, last.namespace)
        return victim is not None and not victim.metadata.HasField("deletionTimestamp")

    def begin(self, pod: PodInfo) -> None:
        """Note that the pod's evictions are about to start in the background."""
        self._preempting[pod.uid] = None

    def in_background(self, candidate: Candidate, pod: PodInfo) -> IoSteps[None]:
        """Evict the candidate's victims; call `begin` first. A rejected request is no error.

        After one the preemptor goes back to the active queue, or it could wait for an event that never comes.
        Without a pause it would be tried as fast as requests can fail while the API server is away.
        """
        victims = [victim for victim in candidate.victims if not victim.is_terminating]
        failed = False
        try:
            yield Failpoint(BEFORE, _labels(pod, node=candidate.node))
            yield from self._clear_lower_nominations(candidate, pod)
            error = yield from self._evict_all(candidate, pod, victims[:-1])
            if error is None and victims:
                self._preempting[pod.uid] = victims[-1].key
                error = yield from self._evict_all(candidate, pod, victims[-1:])
            failed = error is not None
        except _FAILURES:
            failed = True
        finally:
            self._preempting.pop(pod.uid, None)
        if failed:
            yield Sleep(RETRY_SECONDS)
            self._handle.activate({str(pod.key): pod.pod})

    def before_requeueing(self, candidate: Candidate, pod: PodInfo) -> IoSteps[Status | None]:
        """Evict the victims before the cycle ends (SchedulerAsyncPreemption off); return the first error.

        Its text begins as all of DefaultPreemption's PostFilter do (kube-scheduler 1.36).
        """
        try:
            yield Failpoint(BEFORE, _labels(pod, node=candidate.node))
        except _FAILURES as rejected:
            return self._failed(rejected)
        victims = [victim for victim in candidate.victims if not victim.is_terminating]
        error = yield from self._evict_all(candidate, pod, victims)
        if error is not None:
            return self._failed(error)
        yield from self._clear_lower_nominations(candidate, pod)
        return None

    def _failed(self, error: Exception) -> Status:
        return Status(Code.Error, (f"preemption: {error_text(error)}",), self._plugin, error)

    def _evict_all(
        self, candidate: Candidate, pod: PodInfo, victims: Sequence[PodInfo]
    ) -> IoSteps[Exception | None]:
        """Evict victims beside each other; return the first error, after which no other eviction begins."""
        errors: list[Exception] = []

        def evict(victim: PodInfo) -> IoSteps[None]:
            if errors:
                return
            try:
                yield from self._evict(candidate, pod, victim)
            except _FAILURES as error:
                errors.append(error)

        if victims:
            yield Concurrently([evict(victim) for victim in victims], PARALLEL_MAX)
        return errors[0] if errors else None

    def _evict(self, candidate: Candidate, pod: PodInfo, victim: PodInfo) -> IoSteps[None]:
        """Stop a victim that only waits on Permit or is in PreBind; mark and delete any other.

        One whose wait has just ended is not stopped: it is going to be bound.
        """
        note = f"Preempted by pod {pod.uid} on node {candidate.node}"
        waiting = self._handle.waiting_pod(victim.uid)
        if waiting is not None and waiting.reject(self._plugin, "preempted"):
            if self._handle.version >= IN_MEMORY_SINCE:
                note += " (in kube-scheduler memory)."
        else:
            try:
                patch = self._mark(pod, victim)
                if patch:
                    yield from _patch_status(victim, patch)
                yield Failpoint(VICTIM_MARKED, _labels(pod, victim=str(victim.key)))
                yield Delete(kinds.POD, victim.name, victim.namespace)
            except StatusError as error:
                if is_not_found(error):
                    return  # deleted already
                raise
        yield Failpoint(VICTIM_AFTER, _labels(pod, victim=str(victim.key)))
        if self._handle.recorder is not None:
            self._handle.recorder.event(
                victim.pod,
                "Normal",
                "Preempted",
                action="Preempting",
                note=note,
                related=pod.pod,
            )

    def _mark(self, pod: PodInfo, victim: PodInfo) -> dict[str, Any]:
        """Return the patch that adds the DisruptionTarget condition; empty if it is there."""
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
        return diff_strategic(
            core.Pod.DESCRIPTOR.full_name,
            {"status": codec.to_json(victim.pod.status)},
            {"status": codec.to_json(status)},
        )

    def _clear_lower_nominations(self, candidate: Candidate, pod: PodInfo) -> IoSteps[None]:
        """Clear the nominations of lower priority to the node, so that those pods look for another one."""
        for other in self._handle.nominator.pods_on(candidate.node):
            if other.priority < pod.priority:
                yield ClearNomination(other.pod)


def _patch_status(victim: PodInfo, patch: object) -> IoSteps[None]:
    """Patch the victim's status, again after a retriable error; one that timed out is not tried again.

    Source: kube-scheduler 1.36, util.PatchPodStatus and util.Retriable.
    """
    for seconds in MARK_RETRY_SECONDS:
        try:
            yield Patch(kinds.POD, victim.name, victim.namespace, patch, "status")
        except StatusError as error:
            if error.reason not in RETRIABLE:
                raise
            yield Sleep(seconds)
        else:
            return
    yield Patch(kinds.POD, victim.name, victim.namespace, patch, "status")


def _labels(pod: PodInfo, **more: str) -> dict[str, str]:
    return {"pod": str(pod.key), **more}
