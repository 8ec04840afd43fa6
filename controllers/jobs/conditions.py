"""Conditions of Jobs. Pure.

Source: kube-controller-manager 1.36, pkg/controller/job (newCondition, ensureJobConditionStatus).
"""

from __future__ import annotations

from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import batch
from nominee.machinery.runtime.clock import to_time


def condition(
    type_: str, reason: str, message: str, now: float, *, status: str = "True"
) -> batch.JobCondition:
    """Return a new condition, of which nothing is kept from an older one."""
    at = to_time(now)
    return batch.JobCondition(
        type=type_, status=status, lastProbeTime=at, lastTransitionTime=at, reason=reason, message=message
    )


def ensure(status: batch.JobStatus, new: batch.JobCondition) -> bool:
    """Set a condition, and return whether something changed. One that is not there is not set to False."""
    old = get_condition(status.conditions, new.type)
    if old is None:
        if new.status == "False":
            return False
        status.conditions.append(new)
        return True
    if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        return False
    old.CopyFrom(new)
    return True


def true_condition(job: batch.Job, *types: str) -> batch.JobCondition | None:
    """Return the first of these conditions that is True, or None."""
    return next(
        (each for each in job.status.conditions if each.type in types and each.status == "True"), None
    )


def terminal_condition(job: batch.Job) -> batch.JobCondition | None:
    """Return the condition by which a Job is finished, or None."""
    return true_condition(job, "Complete", "Failed")
