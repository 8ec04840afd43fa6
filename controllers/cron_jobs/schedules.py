"""The time at which a CronJob's next Job is due. Pure.

Source: kube-controller-manager 1.36, pkg/controller/cronjob/utils.go.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nominee.machinery.api.pb import batch
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.wire.values.cron_schedule import NEVER, Schedule

MISSED_MAX: Final = 100
"""More missed times than this are an error of the user's, or of a clock."""
_DELTA_SECONDS: Final = 0.1
"""So much later than its time a CronJob is looked at again."""


class InvalidScheduleError(ValueError):
    """A schedule without two times that follow each other."""


class DueTime(NamedTuple):
    """The last time that is due, and how many are; `since`: where the count began."""

    since: float
    time: float | None = None
    misses: int = 0


def with_zone(cron_job: batch.CronJob) -> str:
    """Return the text of the schedule with its time zone."""
    spec = cron_job.spec
    return (
        f"TZ={spec.timeZone} {spec.schedule}"
        if spec.timeZone and "TZ" not in spec.schedule
        else spec.schedule
    )


def due_time(
    cron_job: batch.CronJob, schedule: Schedule, now: float, *, with_deadline: bool = True
) -> DueTime:
    """Return the last time after the last Job, and within the deadline, that is not in the future.

    Of many times that were missed their number is an estimate.

    Raises:
        InvalidScheduleError: the schedule has no times, as that of 31 February.
    """
    spec, status = cron_job.spec, cron_job.status
    since = from_time(cron_job.metadata.creationTimestamp)
    if status.HasField("lastScheduleTime"):
        since = from_time(status.lastScheduleTime)
    if with_deadline and spec.HasField("startingDeadlineSeconds"):
        since = max(since, now - spec.startingDeadlineSeconds)
    first = schedule.next(since)
    if first > now:
        return DueTime(since)
    second = NEVER if first == NEVER else schedule.next(first)  # no zone west of UTC has a time before NEVER
    if second > now:
        return DueTime(since, first)
    period = int(second - first)
    if period < 1:
        raise InvalidScheduleError("time difference between two schedules is less than 1 second")
    missed = int(now - first) // period + 1
    last, following = None, schedule.next(first + (missed - 2) * period)
    while NEVER < following <= now:
        last, following = following, schedule.next(following)
    return DueTime(since, last, missed)


def seconds_to_next(cron_job: batch.CronJob, schedule: Schedule, now: float) -> float:
    """Return the seconds until the time after the one that is due."""
    try:
        due = due_time(cron_job, schedule, now, with_deadline=False)
    except InvalidScheduleError:
        due = DueTime(now, now)
    last = due.time if due.time is not None else (now if due.misses else due.since)
    return schedule.next(last) + _DELTA_SECONDS - now
