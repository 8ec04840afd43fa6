"""Properties of pods. Pure. Source: cluster-autoscaler 1.36, utils/pod and utils/drain."""

from __future__ import annotations

from nominee.autoscaler.planning import annotation_keys
from nominee.machinery.api import objects
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time

LONG_TERMINATING_EXTRA_SECONDS = 30.0
GRACE_SECONDS_DEFAULT = 30


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
