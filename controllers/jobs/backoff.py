"""The delay before failed pods of a Job are replaced: 10 s doubling up to 10 minutes. Pure.

Source: kube-controller-manager 1.36, pkg/controller/job/backoff_utils.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nominee.controllers.jobs.indexes import all_failures
from nominee.machinery.api.objects import get_condition, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time

DELAY_SECONDS: Final = 10.0
DELAY_SECONDS_MAX: Final = 600.0
_DOUBLINGS_MAX: Final = 6
"""After so many doublings the delay is at its limit."""


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of a Job since a pod of it last succeeded; `last`: when, in seconds since the epoch."""

    count: int = 0
    last: float = 0.0

    def with_ended(self, succeeded: Sequence[core.Pod], failed: Sequence[core.Pod]) -> Failures:
        """Return the failures after these pods have ended."""
        times = [ended_at(pod) for pod in failed]
        if not succeeded:
            return Failures(self.count + len(times), max(times)) if times else self
        success = max(map(ended_at, succeeded))
        times = [time for time in times if time > success]
        return Failures(len(times), max(times)) if times else Failures()

    def remaining_seconds(self, now: float) -> float:
        """Return after how many seconds the next pod may be created."""
        if self.count == 0:
            return 0.0
        delay = min(DELAY_SECONDS * (1 << min(self.count - 1, _DOUBLINGS_MAX)), DELAY_SECONDS_MAX)
        return max(self.last + delay - now, 0.0)


def of_index(replaced: core.Pod | None) -> Failures:
    """Return the failures of one index, from the failed pod that is to be replaced (backoffLimitPerIndex)."""
    return Failures() if replaced is None else Failures(all_failures(replaced) + 1, ended_at(replaced))


def ended_at(pod: core.Pod) -> float:
    """Return when a pod ended, in seconds since the epoch.

    That is when its last container ended; else since when it is not ready, or when its deletion began.
    """
    statuses = pod.status.containerStatuses
    ends = [
        each.state.terminated.finishedAt for each in statuses if each.state.terminated.HasField("finishedAt")
    ]
    if statuses and len(ends) == len(statuses):
        return max(map(from_time, ends))
    ready = get_condition(pod.status.conditions, "Ready")
    if ready is not None and ready.status == "False" and ready.HasField("lastTransitionTime"):
        return from_time(ready.lastTransitionTime)
    if is_terminating(pod):
        return from_time(pod.metadata.deletionTimestamp) - pod.metadata.deletionGracePeriodSeconds
    return from_time(pod.metadata.creationTimestamp)
