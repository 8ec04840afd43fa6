"""Whether a pod counts as a replica, is ready, and is available. Pure.

Source: kube-controller-manager 1.36, pkg/controller (IsPodActive); pkg/api/v1/pod (IsPodAvailable).
"""

from __future__ import annotations

from nominee.machinery.api.objects import condition_is, get_condition, has_ended, is_terminating
from nominee.machinery.api.pb import core


def is_active(pod: core.Pod) -> bool:
    """Report whether a pod counts as a replica: not ended, not terminating."""
    return not has_ended(pod) and not is_terminating(pod)


def is_ready(pod: core.Pod) -> bool:
    return condition_is(pod.status.conditions, "Ready")


def is_available(pod: core.Pod, min_ready_seconds: int, now_seconds: float) -> bool:
    """Report whether a pod has been ready for at least minReadySeconds."""
    ready = get_condition(pod.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return False
    if min_ready_seconds == 0:
        return True
    since = ready.lastTransitionTime
    return since.HasField("seconds") and since.seconds + min_ready_seconds <= now_seconds
