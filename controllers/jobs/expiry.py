"""When a finished Job is deleted (ttlSecondsAfterFinished). Pure.

Source: kube-controller-manager 1.36, pkg/controller/ttlafterfinished.
"""

from __future__ import annotations

from nominee.controllers.jobs.conditions import terminal_condition
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import batch
from nominee.machinery.runtime.clock import from_time


def remaining_seconds(job: batch.Job, now: float) -> float | None:
    """Return after how many seconds the Job may be deleted, or None for one that is not to be."""
    end = terminal_condition(job)
    if end is None or is_terminating(job) or not job.spec.HasField("ttlSecondsAfterFinished"):
        return None
    return max(from_time(end.lastTransitionTime) + job.spec.ttlSecondsAfterFinished - now, 0.0)
