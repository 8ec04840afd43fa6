"""Order pods by importance and by the time they run. Source: kube-scheduler 1.36, scheduler util."""

from __future__ import annotations

from collections.abc import Sequence

from machinery.runtime.clock import from_time
from scheduler.framework.types import PodInfo


def start_seconds(pod: PodInfo, now: float) -> float:
    """Return when the pod started, seconds since the epoch; a pod without a start counts as starting now."""
    status = pod.pod.status
    return from_time(status.startTime) if status.HasField("startTime") else now


def by_importance(pods: Sequence[PodInfo], now: float) -> list[PodInfo]:
    """Return the pods sorted: higher priority first, then those that run longer."""
    return sorted(pods, key=lambda pod: (-pod.priority, start_seconds(pod, now)))


def earliest_start_of_top(victims: Sequence[PodInfo], now: float) -> float:
    """Return the earliest start among the victims of the highest priority."""
    top = max(victim.priority for victim in victims)
    return min(start_seconds(victim, now) for victim in victims if victim.priority == top)
