"""CronJobs, Jobs and their pods. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nominee.lab.chaos.cases.perturbations import JUMP_SECONDS
from nominee.lab.chaos.cases.rest import TRACKING
from nominee.lab.chaos.rest.state import Finding, State, in_order, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS, live_pods
from nominee.lab.chaos.rest.workloads.refusals import may_refuse
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import (
    condition_is,
    get_condition,
    has_ended,
    is_controlled_by,
    is_terminating,
)
from nominee.machinery.api.pb import batch, core
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.wire.values import index_ranges
from nominee.machinery.wire.values.scalars import parse_time

_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_INT32_MAX: Final = 2**31 - 1
_BACK_OFF_SECONDS_MAX: Final = 690.0
"""Ten minutes, and the time for all other findings."""
_COMPLETED_SECONDS_MAX: Final = JUMP_SECONDS + 65.0
"""The back-off of a Job whose status is refused is a minute at most."""


def jobs(state: State) -> Iterator[Finding]:
    """Find Jobs without their pods, with pods that they do not count, or with another status than theirs.

    Pods may be refused. A Job that is to end waits for those that terminate.
    """
    if CONTROLLERS not in state.running:
        return
    for job in state.of(kinds.JOB):
        if not _is_reconciled(job):
            continue
        live, wanted = _live_and_wanted(state, job)
        is_refused = len(live) < wanted and may_refuse(state, job)
        if len(live) != wanted and not is_refused:
            seconds = {"seconds_max": _BACK_OFF_SECONDS_MAX} if job.status.failed else {}
            yield Finding(name_of(job), f"has {len(live)} live pods, and should have {wanted}", **seconds)
        ready = sum(condition_is(pod.status.conditions, "Ready") for pod in live)
        for name, number in (("active", len(live)), ("ready", ready)):
            shown = getattr(job.status, name)
            # Pods that a namespace that ends refuses stay in this number (job_controller.go, manageJob).
            is_kept = name == "active" and job.metadata.namespace in state.ending_namespaces
            if shown < number or (shown > number and not is_kept):
                yield Finding(name_of(job), f"shows {shown} {name} in its status, and its pods are {number}")
        terminating = _ending(state, job)
        if job.status.terminating != terminating:
            shown = job.status.terminating
            yield Finding(
                name_of(job), f"shows {shown} terminating in its status, and its pods are {terminating}"
            )
        yield from _progress(job, len(live))
        if _is_to_end(job) and not _is_finished(job) and not terminating:
            seconds = {"seconds_max": _COMPLETED_SECONDS_MAX} if _is_early(job) else {}
            yield Finding(name_of(job), "is to end, and no pod of it terminates", **seconds)
        for pod in state.pods_by_namespace.get(job.metadata.namespace, ()):
            if is_controlled_by(pod, job) and has_ended(pod) and TRACKING in pod.metadata.finalizers:
                waits = job.spec.HasField("backoffLimitPerIndex") and pod.status.phase == "Failed"
                if waits and (job.spec.suspend or not job.spec.parallelism):
                    continue  # it is counted when its index gets another pod (canRemoveFinalizer)
                seconds = {"seconds_max": _BACK_OFF_SECONDS_MAX} if waits else {}
                yield Finding(name_of(pod), "has ended, and its Job has not counted it", **seconds)


def _progress(job: batch.Job, live: int) -> Iterator[Finding]:
    """Find contradictions in the status of a Job, and between it and the spec.

    The pods that it counted may be gone, so that succeeded and failed are known from below only.
    """
    name, status, spec = name_of(job), job.status, job.spec
    is_decided = _is_finished(job) or _is_to_end(job)
    uncounted = status.uncountedTerminatedPods
    if uncounted.succeeded or uncounted.failed:
        seconds = {"seconds_max": _COMPLETED_SECONDS_MAX} if _is_early(job) else {}
        yield Finding(name, "has pods in its status that it is still to count", **seconds)
    if spec.completionMode == "Indexed":
        number = sum(map(len, index_ranges.ranges(status.completedIndexes, _INT32_MAX)))
        if status.succeeded != number:
            yield Finding(name, f"shows {status.succeeded} succeeded, and {number} completed indexes")
    if not status.HasField("startTime") and not spec.suspend:
        yield Finding(name, "has no startTime, and is not suspended")
    is_shown = condition_is(status.conditions, "Suspended")
    if not is_decided and is_shown is not spec.suspend:
        state = "suspended" if spec.suspend else "not suspended"
        yield Finding(name, f"shows Suspended={is_shown}, and is {state}")
    least = spec.completions if spec.HasField("completions") else 1
    if not is_decided and not live and status.succeeded >= least:
        yield Finding(name, f"has {status.succeeded} succeeded pods and no live one, and is not to end")
    # The completions of an Indexed Job may be changed, also when it has ended.
    reason = next((each.reason for each in status.conditions if each.type == "Complete"), "")
    if reason == "CompletionsReached" and spec.completionMode != "Indexed" and status.succeeded < least:
        yield Finding(name, f"is complete, and shows {status.succeeded} succeeded of {least} pods")


def _is_early(job: batch.Job) -> bool:
    """Return whether a Job has succeeded before it began, by a clock that went back: it is not complete yet.

    Its completionTime must not come before its startTime (kube-apiserver 1.36, validation of batch).
    """
    success = get_condition(job.status.conditions, "SuccessCriteriaMet")
    return success is not None and from_time(success.lastTransitionTime) < from_time(job.status.startTime)


def lacks_pods(state: State, job: batch.Job) -> bool:
    """Return whether a Job has fewer live pods than it should."""
    live, wanted = _live_and_wanted(state, job)
    return _is_reconciled(job) and len(live) < wanted


def _is_reconciled(job: batch.Job) -> bool:
    """Return whether the Job controller looks after a Job."""
    return not is_terminating(job) and job.spec.managedBy in ("", "kubernetes.io/job-controller")


def _live_and_wanted(state: State, job: batch.Job) -> tuple[list[core.Pod], int]:
    """Return the live pods of a Job, and how many it should have."""
    live = live_pods(state, job)
    wanted = _wanted(job, len(live))
    # Pods that end keep others from being created, and have none deleted (job_controller.go, manageJob).
    least = wanted - (_ending(state, job) if job.spec.podReplacementPolicy == "Failed" else 0)
    return live, min(max(len(live), least), wanted)


def _ending(state: State, job: batch.Job) -> int:
    """Return how many pods of a Job terminate and have not ended; without a kubelet they never do."""
    return sum(
        is_controlled_by(pod, job) and is_terminating(pod) and not has_ended(pod)
        for pod in state.pods_by_namespace.get(job.metadata.namespace, ())
    )


def cron_jobs(state: State) -> Iterator[Finding]:
    """Find CronJobs whose status does not list their unfinished Jobs, or that keep too many finished ones.

    A Job that is missing in the list, since the status write failed, is found when the next sync creates it
    again; a suspended CronJob creates none, and one whose next time has come creates another one. One whose
    place another Job of its name has taken stays in the list as long as there is such a Job: its name alone
    is looked up (kube-controller-manager 1.36, cronjob_controllerv2.go).
    """
    if CONTROLLERS not in state.running:
        return
    uids = {(job.metadata.namespace, job.metadata.name): job.metadata.uid for job in state.of(kinds.JOB)}
    for each in state.of(kinds.CRON_JOB):
        if is_terminating(each):
            continue
        own = [job for job in state.of(kinds.JOB) if is_controlled_by(job, each) and not is_terminating(job)]
        references = each.status.active
        replaced = {one.name for one in references if uids.get((one.namespace, one.name), one.uid) != one.uid}
        forgotten = {job.metadata.name for job in own if _is_forgotten(state, each, job)}
        active = {job.metadata.name for job in own if not _is_finished(job)} - replaced - forgotten
        listed = {one.name for one in references} - replaced
        if active != listed and not (each.spec.suspend and listed < active):
            yield Finding(name_of(each), f"lists {in_order(listed)} as active, which {in_order(active)} are")
        yield from _times(each, own)
        for condition, limit in (
            ("Complete", each.spec.successfulJobsHistoryLimit),
            ("Failed", each.spec.failedJobsHistoryLimit),
        ):
            kept = sum(condition_is(job.status.conditions, condition) for job in own)
            if kept > limit:
                yield Finding(
                    name_of(each), f"keeps {kept} Jobs that are {condition}, and its limit is {limit}"
                )


def _times(cron_job: batch.CronJob, own: Sequence[batch.Job]) -> Iterator[Finding]:
    """Find a CronJob with earlier times in its status than those of its Jobs.

    Of those that it lists, or that succeeded; the times of Jobs that are gone stay. A Job that another client
    made has no time.
    """
    status, listed = cron_job.status, {each.uid for each in cron_job.status.active}
    for job in own:
        scheduled = job.metadata.annotations.get(_SCHEDULED) if job.metadata.uid in listed else None
        if scheduled is not None and parse_time(scheduled)[0] > from_time(status.lastScheduleTime):
            yield Finding(
                name_of(cron_job), f"lists {job.metadata.name}, and its lastScheduleTime is earlier"
            )
        is_complete = condition_is(job.status.conditions, "Complete")
        if is_complete and from_time(job.status.completionTime) > from_time(status.lastSuccessfulTime):
            text = f"has an earlier lastSuccessfulTime than the end of {job.metadata.name}"
            yield Finding(name_of(cron_job), text)


def is_unlisted(cron_job: batch.CronJob, job: batch.Job) -> bool:
    """Return whether a Job of a CronJob runs, and its status does not list it."""
    listed = {each.uid for each in cron_job.status.active}
    return is_controlled_by(job, cron_job) and not _is_finished(job) and job.metadata.uid not in listed


def _is_forgotten(state: State, cron_job: batch.CronJob, job: batch.Job) -> bool:
    """Return whether a Job was never listed, and its CronJob does not look for its time any more."""
    if not is_unlisted(cron_job, job) or job.metadata.uid in state.listed_jobs:
        return False
    scheduled = job.metadata.annotations.get(_SCHEDULED)
    if scheduled is None:
        return False
    time, spec = parse_time(scheduled)[0], cron_job.spec
    is_late = spec.HasField("startingDeadlineSeconds") and time + spec.startingDeadlineSeconds < state.now
    return is_late or time < from_time(cron_job.status.lastScheduleTime)


def _is_finished(job: batch.Job) -> bool:
    return any(condition_is(job.status.conditions, end) for end in ("Complete", "Failed"))


def _is_to_end(job: batch.Job) -> bool:
    """Return whether it is decided that a Job ends: it gets no more pods.

    It ends when its last pod has ended (kube-controller-manager 1.36, job_controller.go; KEP-3939).
    """
    return any(condition_is(job.status.conditions, end) for end in ("SuccessCriteriaMet", "FailureTarget"))


def _wanted(job: batch.Job, live: int) -> int:
    """Return how many live pods a Job should have, if none of its pods terminates and has not ended."""
    spec = job.spec
    if spec.suspend or _is_finished(job) or _is_to_end(job):
        return 0
    if not spec.HasField("completions"):
        return live if job.status.succeeded else spec.parallelism
    left = spec.completions - job.status.succeeded
    if spec.HasField("backoffLimitPerIndex"):
        return min(live, left)  # its failed indexes get no more
    return max(min(left, spec.parallelism), 0)
