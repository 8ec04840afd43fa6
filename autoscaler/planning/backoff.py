"""Which node groups are left alone for a while after they failed.

Source: cluster-autoscaler 1.36, backoff.
"""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.options import Options
from machinery.runtime.backoff import ExponentialBackoff


@dataclass(frozen=True, slots=True)
class Failure:
    """A node group's failures in a row; times in seconds since the epoch."""

    failures: int
    duration: float
    until: float
    at: float
    error_code: str
    error_message: str


class Backoff:
    """Each failure after the end of a back-off doubles its time, up to a maximum.

    A success does not end or shorten a back-off; only `--node-group-backoff-reset-timeout` without a failure
    does.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._delays = ExponentialBackoff(
            options.initial_node_group_backoff_duration, options.max_node_group_backoff_duration
        )
        self._failures: dict[str, Failure] = {}

    def add(self, group: str, now: float, *, code: str, message: str) -> float:
        """The group has failed; until when it is left alone."""
        former = self._failures.get(group)
        failures = 1
        if former is not None:
            # Failures during a back-off count as one.
            failures = former.failures + (former.until < now)
        duration = self._delays.delay(failures)
        self._failures[group] = Failure(failures, duration, now + duration, now, code, message)
        return now + duration

    def active(self, group: str, now: float) -> Failure | None:
        """Why the group is left alone now; None when it is not."""
        found = self._failures.get(group)
        return found if found is not None and found.until > now else None

    def remove_stale(self, now: float) -> None:
        reset = self._options.node_group_backoff_reset_timeout
        self._failures = {g: f for g, f in self._failures.items() if f.at + reset >= now}
