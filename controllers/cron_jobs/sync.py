"""One reconciliation of a CronJob: its list of active Jobs, old Jobs, and the Job that is due. Pure.

Source: kube-controller-manager 1.36, pkg/controller/cronjob/cronjob_controllerv2.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from nominee.controllers.cron_jobs.schedules import (
    MISSED_MAX,
    InvalidScheduleError,
    due_time,
    seconds_to_next,
    with_zone,
)
from nominee.controllers.jobs.conditions import terminal_condition
from nominee.controllers.planned_events import PlannedEvent
from nominee.machinery.api.names import go_quote
from nominee.machinery.api.objects import is_terminating, owner_reference
from nominee.machinery.api.pb import batch, core
from nominee.machinery.runtime.clock import from_time, to_time
from nominee.machinery.wire.values import cron_schedule

SCHEDULED_TIMESTAMP: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MORE: Final = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
_TOO_MANY: Final = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)


def is_active(cron_job: batch.CronJob, uid: str) -> bool:
    """Report whether the list of active Jobs has this uid."""
    return any(each.uid == uid for each in cron_job.status.active)


def remove_active(cron_job: batch.CronJob, uid: str) -> None:
    """Remove a Job from the list of active ones."""
    left = [each for each in cron_job.status.active if each.uid != uid]
    del cron_job.status.active[:]
    cron_job.status.active.extend(left)


def old_jobs(cron_job: batch.CronJob, jobs: Sequence[batch.Job]) -> list[batch.Job]:
    """Return the finished Jobs beyond the limits of the history, the oldest of each kind."""
    spec, old = cron_job.spec, list[batch.Job]()
    for type_, name in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        ended = [job for job in jobs if (end := terminal_condition(job)) is not None and end.type == type_]
        if spec.HasField(name):
            old += sorted(ended, key=_start)[: max(len(ended) - getattr(spec, name), 0)]
    return old


def _start(job: batch.Job) -> tuple[bool, int, str]:
    return not job.status.HasField("startTime"), job.status.startTime.seconds, job.metadata.name


def note_job(cron_job: batch.CronJob, job: batch.Job) -> PlannedEvent | None:
    """Enter the state of one of its Jobs into the status, and return the event about it."""
    status, end = cron_job.status, terminal_condition(job)
    listed = is_active(cron_job, job.metadata.uid)
    if end is None:
        note = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
        return None if listed else PlannedEvent("UnexpectedJob", note, "Warning")
    done = status.lastSuccessfulTime
    if end.type == "Complete" and from_time(job.status.completionTime) > from_time(done):
        done.CopyFrom(job.status.completionTime)
    if not listed:
        return None
    remove_active(cron_job, job.metadata.uid)
    return PlannedEvent("SawCompletedJob", f"Saw completed job: {job.metadata.name}, condition: {end.type}")


@dataclass(frozen=True, slots=True)
class Due:
    """The Job to create (`replaces`: after the active ones are deleted) and the seconds to the next time."""

    again: float | None = None
    job: batch.Job | None = None
    time: float = 0.0
    replaces: bool = False
    events: tuple[PlannedEvent, ...] = ()


def due(cron_job: batch.CronJob, now: float) -> Due:
    """Return the Job that is due."""
    spec, status = cron_job.spec, cron_job.status
    if is_terminating(cron_job):
        return Due()
    if spec.HasField("timeZone") and not cron_schedule.is_time_zone(spec.timeZone):
        unknown = f"invalid timeZone: {go_quote(spec.timeZone)}: unknown time zone {spec.timeZone}"
        return Due(events=(PlannedEvent("UnknownTimeZone", unknown, "Warning"),))
    if spec.suspend:
        return Due()
    events: list[PlannedEvent] = []
    if "TZ" in spec.schedule:
        quoted = go_quote(spec.schedule)
        note = f"CRON_TZ or TZ used in schedule {quoted} is not officially supported"
        events.append(_warning("UnsupportedSchedule", f"{note}, see {_MORE} for more details"))
    try:
        schedule = cron_schedule.parse(with_zone(cron_job))
    except ValueError as error:
        note = f"unparseable schedule: {go_quote(spec.schedule)} : {error}"
        return Due(events=(*events, _warning("UnparseableSchedule", note)))
    try:
        found = due_time(cron_job, schedule, now)
    except InvalidScheduleError as error:
        note = f"invalid schedule: {spec.schedule} : {error}"
        return Due(events=(*events, _warning("InvalidSchedule", note)))
    again = seconds_to_next(cron_job, schedule, now)
    if found.time is None:
        return Due(again, events=tuple(events))
    if found.misses > MISSED_MAX:
        events.append(_warning("TooManyMissedTimes", _TOO_MANY))
    if spec.HasField("startingDeadlineSeconds") and found.time + spec.startingDeadlineSeconds < now:
        at = datetime.fromtimestamp(found.time, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
        events.append(_warning("MissSchedule", f"Missed scheduled time to start a job: {at}"))
        return Due(again, events=tuple(events))
    if _was_handled(cron_job, found.time):
        return Due(again, events=tuple(events))
    if spec.concurrencyPolicy == "Forbid" and status.active:
        note = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return Due(again, events=(*events, PlannedEvent("JobAlreadyActive", note)))
    replaces = spec.concurrencyPolicy == "Replace"
    return Due(again, new_job(cron_job, found.time), found.time, replaces, tuple(events))


def seconds_to_change(cron_job: batch.CronJob, now: float) -> float:
    """Return the seconds until the first time of a new schedule; an unreadable one is looked at now."""
    try:
        return seconds_to_next(cron_job, cron_schedule.parse(with_zone(cron_job)), now)
    except ValueError:
        return 0.0


def _warning(reason: str, note: str) -> PlannedEvent:
    return PlannedEvent(reason, note, "Warning")


def _was_handled(cron_job: batch.CronJob, time: float) -> bool:
    """Report whether the Job of this time was created."""
    status, name = cron_job.status, job_name(cron_job, time)
    if any((each.name, each.namespace) == (name, cron_job.metadata.namespace) for each in status.active):
        return True
    return status.HasField("lastScheduleTime") and from_time(status.lastScheduleTime) == time


def job_name(cron_job: batch.CronJob, time: float) -> str:
    """Return the name of the Job of a time, which makes a second one impossible: it ends with the minute."""
    return f"{cron_job.metadata.name}-{int(time) // 60}"


def new_job(cron_job: batch.CronJob, time: float) -> batch.Job:
    """Return the Job of a time."""
    template, zone = cron_job.spec.jobTemplate, cron_job.spec.timeZone
    job = batch.Job()
    job.metadata.name, job.metadata.namespace = job_name(cron_job, time), cron_job.metadata.namespace
    job.metadata.labels.update(template.metadata.labels)
    job.metadata.annotations.update(template.metadata.annotations)
    local = datetime.fromtimestamp(time, ZoneInfo(zone) if zone else UTC).isoformat(timespec="seconds")
    job.metadata.annotations[SCHEDULED_TIMESTAMP] = local.replace("+00:00", "Z")
    job.metadata.ownerReferences.append(owner_reference(cron_job))
    job.spec.CopyFrom(template.spec)
    return job


def note_created(cron_job: batch.CronJob, job: batch.Job, time: float) -> None:
    """Enter a Job that was created into the status."""
    metadata, status = job.metadata, cron_job.status
    reference = core.ObjectReference(
        kind="Job", apiVersion="batch/v1", name=metadata.name, namespace=metadata.namespace,
        uid=metadata.uid, resourceVersion=metadata.resourceVersion,
    )  # fmt: skip
    status.active.append(reference)
    status.lastScheduleTime.CopyFrom(to_time(time))
