"""Properties of pods: their controllers, their age, and the result of the scheduler for them. Pure.

Source: cluster-autoscaler 1.36, utils/pod, utils/drain, static autoscaler, utils/kubernetes listers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from nominee.autoscaler.options import Compat, Options
from nominee.autoscaler.planning.objects import annotation_keys
from nominee.machinery.api import objects
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.wire.values.scalars import parse_seconds

LONG_TERMINATING_EXTRA_SECONDS = 30.0
GRACE_SECONDS_DEFAULT = 30
UNSCHEDULABLE_POD_BUFFER_SECONDS = 2.0
"""While all pods are younger, more pods are probably being created: the autoscaler waits one loop."""


def is_unschedulable(pod: core.Pod) -> bool:
    """Report whether the scheduler has found no node for the pod."""
    condition = objects.get_condition(pod.status.conditions, "PodScheduled")
    return condition is not None and condition.status == "False" and condition.reason == "Unschedulable"


def is_expendable(pod: core.Pod, cutoff: int) -> bool:
    """Report whether the pod's priority is below `--expendable-pods-priority-cutoff`.

    It neither triggers a scale-up nor blocks a scale-down. A pod without a priority is not expendable.
    """
    return pod.spec.HasField("priority") and pod.spec.priority < cutoff


def is_mirror(pod: core.Pod) -> bool:
    return annotation_keys.CONFIG_MIRROR in pod.metadata.annotations


def is_static(pod: core.Pod) -> bool:
    """Report whether the kubelet has the pod from another source than the API server."""
    return pod.metadata.annotations.get(annotation_keys.CONFIG_SOURCE, "api") != "api"


def is_daemon(pod: core.Pod) -> bool:
    """Report whether a DaemonSet controls the pod, or its annotation says to treat it so."""
    owner = objects.controller_of(pod)
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return pod.metadata.annotations.get(annotation_keys.DAEMONSET_POD) == "true"


def grace_seconds(pod: core.Pod) -> int:
    """Return the pod's termination grace period in seconds."""
    spec = pod.spec
    given = spec.HasField("terminationGracePeriodSeconds")
    return spec.terminationGracePeriodSeconds if given else GRACE_SECONDS_DEFAULT


def is_long_terminating(pod: core.Pod, now: float) -> bool:
    """Report whether the pod's grace period ended more than `LONG_TERMINATING_EXTRA_SECONDS` ago."""
    if not objects.is_terminating(pod):
        return False
    deleted = from_time(pod.metadata.deletionTimestamp)
    return deleted + grace_seconds(pod) + LONG_TERMINATING_EXTRA_SECONDS < now


def creation_seconds(pod: core.Pod) -> float:
    """Return the creation time in seconds since the epoch."""
    return from_time(pod.metadata.creationTimestamp)


def unbound(pod: core.Pod) -> core.Pod:
    """Return the pod without its node, as its controller would create it again."""
    if not pod.spec.nodeName:
        return pod
    copy = copy_of(pod)
    copy.spec.ClearField("nodeName")
    return copy


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


@dataclass(slots=True)
class PodsBySchedulability:
    """Pods that have not completed; those that the scheduler has not tried are only in `unprocessed`."""

    scheduled: list[core.Pod] = field(default_factory=list)
    nominated: list[core.Pod] = field(default_factory=list)
    unschedulable: list[core.Pod] = field(default_factory=list)
    unprocessed: list[core.Pod] = field(default_factory=list)
    """Pods of the schedulers in `--bypassed-scheduler-names` that have not been tried."""


def arrange_by_schedulability(pods: Iterable[core.Pod], options: Options) -> PodsBySchedulability:
    """Sort pods by schedulability.

    As 1.35, nominated pods are not distinguished here: they count only if they are Unschedulable, too.
    """
    result = PodsBySchedulability()
    for pod in pods:
        if objects.has_ended(pod):
            continue
        if pod.spec.nodeName:
            result.scheduled.append(pod)
        elif objects.is_terminating(pod):
            continue
        elif pod.status.nominatedNodeName and options.compat is not Compat.V1_35:
            result.nominated.append(pod)
        elif is_unschedulable(pod):
            result.unschedulable.append(pod)
        elif pod.spec.schedulerName in options.bypassed_scheduler_names:
            result.unprocessed.append(pod)
    return result
