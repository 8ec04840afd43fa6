"""The results of the scenario of many deferred pods."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """The load beside the new pods."""

    NONE = "no deferred pods"
    QUIET = "deferred pods"
    CHURN = "deferred pods, deletions on their nodes"


BASELINE = Condition.NONE.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One measurement; `cpu_ms` is the scheduler's processor time for each new pod in milliseconds."""

    seed: int
    condition: str
    pods_per_second: float
    cpu_ms: float
