"""Back-off of node groups after failed scale-ups. Pure.

Source: cluster-autoscaler 1.36, utils/backoff (exponential back-off).
"""

from __future__ import annotations

from dataclasses import dataclass

from nominee.autoscaler.options import Options
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff


@dataclass(frozen=True, slots=True)
class GroupBackoff:
    """The last back-off of a group: duration in seconds, times in seconds of `Clock.monotonic`."""

    failures: int
    """Failures in a row."""
    duration: float
    until: float
    failed_at: float
    error_code: str
    error_message: str


class NodeGroupBackoff:
    """Back off node groups; a failure after the end of a back-off doubles the duration, up to a maximum.

    A success does not end or shorten a back-off; only `--node-group-backoff-reset-timeout` without a failure
    resets the duration.
    """

    def __init__(self, options: Options) -> None:
        self._delays = ExponentialBackoff(
            options.initial_node_group_backoff_duration, options.max_node_group_backoff_duration
        )
        self._reset_timeout = options.node_group_backoff_reset_timeout
        self._groups: dict[str, GroupBackoff] = {}

    def backoff(self, group: str, now: float, *, code: str, message: str) -> float:
        """Back the group off after a failure; return the end of the back-off.

        Several failures at once count as one: a failure during a back-off does not double its duration.
        """
        former = self._groups.get(group)
        failures = 1 if former is None else former.failures + (former.until < now)
        duration = self._delays.delay(failures)
        self._groups[group] = GroupBackoff(failures, duration, now + duration, now, code, message)
        return now + duration

    def status(self, group: str, now: float) -> GroupBackoff | None:
        """Return the current back-off of the group; None if it is not backed off."""
        last = self._groups.get(group)
        return last if last is not None and last.until > now else None

    def remove_stale(self, now: float) -> None:
        """Forget groups that have not failed for `--node-group-backoff-reset-timeout`."""
        reset = self._reset_timeout
        self._groups = {group: last for group, last in self._groups.items() if last.failed_at + reset >= now}
