"""Pods that are too young for a scale-up. Pure. Source: cluster-autoscaler 1.36, static autoscaler."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nominee.autoscaler.planning import annotation_keys
from nominee.autoscaler.planning.pods import creation_seconds
from nominee.machinery.api.pb import core
from nominee.machinery.wire.scalars import parse_seconds

UNSCHEDULABLE_POD_BUFFER_SECONDS = 2.0
"""While all pods are younger, more pods are probably being created: the autoscaler waits one loop."""


def filter_out_young_pods(pods: Iterable[core.Pod], delay: float, now: float) -> list[core.Pod]:
    """Return the pods that are older than `delay` seconds, or than the longer delay of their annotation."""
    return [pod for pod in pods if now - creation_seconds(pod) > _scale_up_delay(pod, delay)]


def _scale_up_delay(pod: core.Pod, delay: float) -> float:
    text = pod.metadata.annotations.get(annotation_keys.POD_SCALE_UP_DELAY)
    if text is None:
        return delay
    try:
        return max(parse_seconds(text), delay)
    except ValueError:
        return delay


def all_pods_are_new(pods: Collection[core.Pod], now: float) -> bool:
    """Report whether even the oldest pod is younger than `UNSCHEDULABLE_POD_BUFFER_SECONDS`."""
    return min(map(creation_seconds, pods)) + UNSCHEDULABLE_POD_BUFFER_SECONDS > now
