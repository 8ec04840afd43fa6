"""The status of a stateful set. Pure.

Source: kube-controller-manager 1.36, pkg/controller/statefulset (updateStatus, completeRollingUpdate).
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.controllers.owned_pods.readiness import is_available, is_ready
from nominee.controllers.stateful_sets.identity import revision_of
from nominee.machinery.api.objects import get_condition, is_terminating
from nominee.machinery.api.pb import apps, core


def is_running_and_ready(pod: core.Pod) -> bool:
    return pod.status.phase == "Running" and is_ready(pod)


def status_of(
    of: apps.StatefulSet,
    pods: Sequence[core.Pod],
    current: str,
    update: str,
    collisions: int,
    now_seconds: float,
) -> apps.StatefulSetStatus:
    """Return the status for these pods; `current` and `update` are the names of the revisions."""
    ready = [pod for pod in pods if is_running_and_ready(pod)]
    staying = [revision_of(pod) for pod in pods if not is_terminating(pod)]
    status = apps.StatefulSetStatus(
        observedGeneration=of.metadata.generation,
        currentRevision=current,
        updateRevision=update,
        collisionCount=collisions,
        replicas=len(pods),
        readyReplicas=len(ready),
        availableReplicas=sum(is_available(pod, of.spec.minReadySeconds, now_seconds) for pod in ready),
        currentReplicas=staying.count(current),
        updatedReplicas=staying.count(update),
    )
    counts = {status.updatedReplicas, status.readyReplicas, status.replicas}
    if of.spec.updateStrategy.type == "RollingUpdate" and counts == {of.spec.replicas}:
        status.currentReplicas, status.currentRevision = status.updatedReplicas, update
    return status


def recheck_seconds(of: apps.StatefulSet, pods: Sequence[core.Pod], now_seconds: float) -> float | None:
    """Return after how many seconds the next ready pod becomes available, by time alone."""
    least = of.spec.minReadySeconds
    waits = [
        ready.lastTransitionTime.seconds + least - now_seconds
        for pod in pods
        if is_ready(pod) and not is_available(pod, least, now_seconds)
        for ready in [get_condition(pod.status.conditions, "Ready")]
        if ready is not None
    ]
    return min((each for each in waits if each > 0), default=None)
