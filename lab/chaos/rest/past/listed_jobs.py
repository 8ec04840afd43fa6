"""The Jobs that a CronJob has listed as active. No I/O.

The list is written after the creation of a Job. If this write is lost, the next sync finds the Job by the
name of its time, and lists it. When the next time is due before, or the deadline for the start is over, the
sync looks at another name, or at none, and reports the Job as unexpected (UnexpectedJob).
Source: kube-controller-manager 1.36, syncCronJob.
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import CRON_JOB


def listed_jobs(history: Iterable[Revision]) -> frozenset[str]:
    """Return the uids of all Jobs that the status of a CronJob had at some time."""
    listed: set[str] = set()
    for revision in history:
        if revision.kind is CRON_JOB and revision.is_readable:
            cron_job = revision.after(CRON_JOB)
            listed |= {each.uid for each in cron_job.status.active} if cron_job is not None else set()
    return frozenset(listed)
