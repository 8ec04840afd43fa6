"""Kinds of pods, and which of them want something.

Source: cluster-autoscaler 1.36, listers and pod utilities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from autoscaler.options import Compat, Options
from autoscaler.planning import annotation_keys
from machinery.api import objects
from machinery.api.pb import core, meta
from machinery.runtime.clock import from_time
from machinery.wire.scalars import parse_seconds

YOUNG_SECONDS = 2.0
"""While all pods are younger, more are probably on their way: wait one loop."""
LONG_TERMINATING_EXTRA_SECONDS = 30.0


@dataclass(slots=True)
class Arranged:
    """All living pods, by what they are to the autoscaler; those that are nothing are left out."""

    scheduled: list[core.Pod] = field(default_factory=list)
    nominated: list[core.Pod] = field(default_factory=list)
    unschedulable: list[core.Pod] = field(default_factory=list)
    unprocessed: list[core.Pod] = field(default_factory=list)


def arrange(pods: Iterable[core.Pod], options: Options) -> Arranged:
    """Sorts pods. Up to 1.35 a nomination counts only with a pod that is Unschedulable, later."""
    found = Arranged()
    for pod in pods:
        if pod.status.phase in ("Succeeded", "Failed"):
            continue
        if pod.spec.nodeName:
            found.scheduled.append(pod)
        elif objects.is_terminating(pod):
            continue
        elif pod.status.nominatedNodeName and options.compat is not Compat.V1_35:
            found.nominated.append(pod)
        elif is_unschedulable(pod):
            found.unschedulable.append(pod)
        elif pod.spec.schedulerName in options.bypassed_scheduler_names:
            found.unprocessed.append(pod)
    return found


def is_unschedulable(pod: core.Pod) -> bool:
    """The scheduler has tried it and said so."""
    condition = objects.get_condition(pod.status.conditions, "PodScheduled")
    return condition is not None and condition.status == "False" and condition.reason == "Unschedulable"


def is_expendable(pod: core.Pod, cutoff: int) -> bool:
    """Of a priority below the cutoff: it neither brings nodes nor keeps them. No priority: never."""
    return pod.spec.HasField("priority") and pod.spec.priority < cutoff


def is_mirror(pod: core.Pod) -> bool:
    return annotation_keys.CONFIG_MIRROR in pod.metadata.annotations


def is_static(pod: core.Pod) -> bool:
    return pod.metadata.annotations.get("kubernetes.io/config.source", "api") != "api"


def controller_of(pod: core.Pod) -> meta.OwnerReference | None:
    return objects.controller_of(pod)


def is_daemon(pod: core.Pod) -> bool:
    """Owned by a DaemonSet, or said to be like one."""
    owner = controller_of(pod)
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return pod.metadata.annotations.get(annotation_keys.DAEMONSET_POD) == "true"


def is_long_terminating(pod: core.Pod, now: float) -> bool:
    """It was to be gone by now, and some more."""
    if not objects.is_terminating(pod):
        return False
    grace = (
        pod.spec.terminationGracePeriodSeconds if pod.spec.HasField("terminationGracePeriodSeconds") else 30
    )
    return from_time(pod.metadata.deletionTimestamp) + grace + LONG_TERMINATING_EXTRA_SECONDS < now


def created(pod: core.Pod) -> float:
    return from_time(pod.metadata.creationTimestamp)


def without_young(pods: Iterable[core.Pod], delay: float, now: float) -> list[core.Pod]:
    """Pods older than the delay; a pod may ask for a longer one of its own."""
    return [pod for pod in pods if now - created(pod) > _delay_of(pod, delay)]


def _delay_of(pod: core.Pod, delay: float) -> float:
    text = pod.metadata.annotations.get(annotation_keys.POD_SCALE_UP_DELAY)
    if text is None:
        return delay
    try:
        return max(parse_seconds(text), delay)
    except ValueError:
        return delay


def all_are_new(pods: Collection[core.Pod], now: float) -> bool:
    return min(created(pod) for pod in pods) + YOUNG_SECONDS > now


def unbound(pod: core.Pod) -> core.Pod:
    """As it would be if its controller made it again."""
    if not pod.spec.nodeName:
        return pod
    copy = core.Pod()
    copy.CopyFrom(pod)
    copy.spec.ClearField("nodeName")
    return copy
