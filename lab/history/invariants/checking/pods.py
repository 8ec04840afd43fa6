"""Questions of several checkers about a pod."""

from __future__ import annotations

from nominee.lab.history.invariants.checking.evidence import EXPENDABLE_BELOW, ScaleDown
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import core


def is_terminal(pod: core.Pod) -> bool:
    """Return whether the pod's containers have ended for good."""
    return pod.status.phase in ("Succeeded", "Failed")


def finished_at(pod: core.Pod) -> float:
    """Return when the last container of the pod ended, in seconds since the epoch; infinity if one runs.

    Where none ever ran that is when the pod was deleted: its kubelet had nothing to stop.
    """
    statuses = (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    states = [each.state for each in statuses]
    if statuses and is_terminating(pod) and not any(map(_has_run, statuses)):
        return float(pod.metadata.deletionTimestamp.seconds - pod.metadata.deletionGracePeriodSeconds)
    if not states or not all(each.HasField("terminated") for each in states):
        return float("inf")
    return float(max(each.terminated.finishedAt.seconds for each in states))


def _has_run(status: core.ContainerStatus) -> bool:
    is_waiting = status.state.HasField("waiting") and not status.lastState.HasField("terminated")
    return not is_waiting


def is_expendable(pod: core.Pod, options: ScaleDown | None) -> bool:
    """Return whether the autoscaler treats the pod as if it were not there; by default if it is not known."""
    below = EXPENDABLE_BELOW if options is None else options.expendable_below
    return pod.spec.HasField("priority") and pod.spec.priority < below


def is_pending(pod: core.Pod) -> bool:
    """Return whether the pod waits for a node."""
    return not pod.spec.nodeName and not is_terminal(pod) and not is_terminating(pod)


def same_pod_before(revision: Revision) -> core.Pod | None:
    """Return the pod before the write, if it is the one after it (the same uid)."""
    before, after = revision.before(POD), revision.after(POD)
    if before is None or after is None or before.metadata.uid != after.metadata.uid:
        return None
    return before


def ended_pod(revision: Revision) -> core.Pod | None:
    """Return the pod that does not exist any more after the write."""
    before, after = revision.before(POD), revision.after(POD)
    if before is None or (after is not None and after.metadata.uid == before.metadata.uid):
        return None
    return before
