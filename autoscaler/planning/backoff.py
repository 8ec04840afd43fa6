"""Which node groups are left alone for a while after they failed.

Source: cluster-autoscaler 1.36, backoff.
"""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.options import Options


@dataclass(frozen=True, slots=True)
class Failure:
    """Times in seconds since the epoch."""

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
        self._failures: dict[str, Failure] = {}

    def add(self, group: str, now: float, *, code: str, message: str) -> float:
        """The group has failed; until when it is left alone."""
        options = self._options
        duration = options.initial_node_group_backoff_duration
        former = self._failures.get(group)
        if former is not None:
            # Several failures at once are one.
            doubled = former.duration * 2 if former.until < now else former.duration
            duration = min(doubled, options.max_node_group_backoff_duration)
        self._failures[group] = Failure(duration, now + duration, now, code, message)
        return now + duration

    def active(self, group: str, now: float) -> Failure | None:
        """Why the group is left alone now; None when it is not."""
        found = self._failures.get(group)
        return found if found is not None and found.until > now else None

    def remove_stale(self, now: float) -> None:
        reset = self._options.node_group_backoff_reset_timeout
        self._failures = {g: f for g, f in self._failures.items() if f.at + reset >= now}
