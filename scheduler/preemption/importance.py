"""Order victims by importance and by the time they run.

Source: kube-scheduler 1.36, scheduler util; for groups 1.37, MoreImportantVictim.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.preemption.victim_groups import Victim

_PRIORITY = attrgetter("priority")


def start_seconds(pod: PodInfo, now: float) -> float:
    """Return when the pod started, seconds since the epoch; a pod without a start counts as starting now."""
    return now if pod.started is None else pod.started


def by_importance(victims: Sequence[Victim], now: float) -> list[Victim]:
    """Return the victims sorted.

    By priority, the highest first; pods of groups before others, larger groups before smaller ones; those
    that run longest first.
    """
    return sorted(victims, key=lambda victim: _importance(victim, now))


def _importance(victim: Victim, now: float) -> tuple[int, int, float]:
    pods = victim.pods
    if not victim.in_group:
        return -victim.priority, 0, start_seconds(pods[0], now)
    return -victim.priority, -len(pods), min(start_seconds(pod, now) for pod in pods)


def earliest_start_of_top(victims: Sequence[PodInfo], now: float) -> float:
    """Return the earliest start among the victims of the highest priority."""
    top = max(map(_PRIORITY, victims))
    return min([start_seconds(victim, now) for victim in victims if victim.priority == top])
