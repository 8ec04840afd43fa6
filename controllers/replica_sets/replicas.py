"""The pods that a replica set creates or deletes, and its status. Pure.

Source: kube-controller-manager 1.36, pkg/controller/replicaset and controller_utils (ActivePodsWithRanks).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.machinery.api.objects import (
    condition_is,
    get_condition,
    has_ended,
    is_terminating,
    owner_reference,
)
from nominee.machinery.api.pb import apps, core, meta
from nominee.machinery.api.selectors import LabelSelector

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
BURST_MAX: Final = 500
"""Pods created or deleted in one reconciliation."""
_PHASE_RANK: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


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


def _cost(pod: core.Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _ready_since(pod: core.Pod) -> int:
    ready = get_condition(pod.status.conditions, "Ready")
    return ready.lastTransitionTime.seconds if ready is not None and ready.status == "True" else 0


def _age_bucket(seconds: int, now: float) -> int:
    """Return the age on a logarithmic scale, so that among old pods the order is by uid."""
    return int(math.log2(max(now - seconds, 1))) if seconds else -1


def to_delete(
    pods: Sequence[core.Pod], count: int, siblings_on_node: Mapping[str, int], now_seconds: float
) -> list[core.Pod]:
    """Return the `count` pods to delete.

    First are pods that are unassigned, pending, not ready, of low deletion cost, on a node with many related
    pods, ready for a short time, often restarted, young. `siblings_on_node` counts the active related pods.
    """

    def order(pod: core.Pod) -> tuple[float | str, ...]:
        restarts = max((status.restartCount for status in pod.status.containerStatuses), default=0)
        ready = is_ready(pod)
        return (
            bool(pod.spec.nodeName),
            _PHASE_RANK.get(pod.status.phase, 1),
            ready,
            _cost(pod),
            -siblings_on_node.get(pod.spec.nodeName, 0),
            _age_bucket(_ready_since(pod), now_seconds) if ready else 0,
            -restarts,
            _age_bucket(pod.metadata.creationTimestamp.seconds, now_seconds),
            pod.metadata.uid,
        )

    return sorted(pods, key=order)[:count]


@dataclass(frozen=True, slots=True)
class Scaling:
    """The number of pods to create, or the pods to delete; at most one of the two."""

    create: int = 0
    delete: tuple[core.Pod, ...] = ()


def plan(
    replica_set: apps.ReplicaSet,
    active: Sequence[core.Pod],
    siblings_on_node: Mapping[str, int],
    now_seconds: float,
) -> Scaling:
    """Return the creations and deletions that bring the active pods to spec.replicas."""
    if is_terminating(replica_set):
        return Scaling()
    difference = len(active) - replica_set.spec.replicas
    if difference < 0:
        return Scaling(create=min(-difference, BURST_MAX))
    if difference > 0:
        count = min(difference, BURST_MAX)
        return Scaling(delete=tuple(to_delete(active, count, siblings_on_node, now_seconds)))
    return Scaling()


def pod_of(replica_set: apps.ReplicaSet) -> core.Pod:
    """Return a new pod from the template, owned by the replica set."""
    template = replica_set.spec.template
    pod = core.Pod()
    pod.metadata.namespace = replica_set.metadata.namespace
    pod.metadata.generateName = f"{replica_set.metadata.name}-"
    pod.metadata.labels.update(template.metadata.labels)
    pod.metadata.annotations.update(template.metadata.annotations)
    pod.metadata.finalizers.extend(template.metadata.finalizers)
    pod.metadata.ownerReferences.append(owner_reference(replica_set))
    pod.spec.CopyFrom(template.spec)
    return pod


def status_of(
    replica_set: apps.ReplicaSet,
    pods: Sequence[core.Pod],
    failure: str,
    now: meta.Time,
    *,
    terminating: bool = False,
) -> apps.ReplicaSetStatus:
    """Return the status for these pods; `failure` is why a creation or deletion failed, or "".

    `terminating`: whether terminating pods are counted (DeploymentReplicaSetTerminatingReplicas).
    """
    active = [pod for pod in pods if is_active(pod)]
    template = LabelSelector.parse(
        ",".join(f"{key}={value}" for key, value in sorted(replica_set.spec.template.metadata.labels.items()))
    )
    status = apps.ReplicaSetStatus()
    status.replicas = len(active)
    status.fullyLabeledReplicas = sum(template.matches(pod.metadata.labels) for pod in active)
    ready, least = [pod for pod in active if is_ready(pod)], replica_set.spec.minReadySeconds
    status.readyReplicas = status.availableReplicas = len(ready)
    if least:
        status.availableReplicas = sum(is_available(pod, least, now.seconds) for pod in ready)
    status.observedGeneration = replica_set.metadata.generation
    if terminating:
        status.terminatingReplicas = sum(is_terminating(pod) and not has_ended(pod) for pod in pods)
    old = get_condition(replica_set.status.conditions, "ReplicaFailure")
    if failure:
        if old is not None:
            status.conditions.append(old)
        else:
            reason = "FailedCreate" if len(active) < replica_set.spec.replicas else "FailedDelete"
            status.conditions.add(
                type="ReplicaFailure", status="True", reason=reason, message=failure, lastTransitionTime=now
            )
    return status


def recheck_seconds(
    replica_set: apps.ReplicaSet, pods: Sequence[core.Pod], now_seconds: float
) -> float | None:
    """Return after how many seconds to reconcile again, since ready pods become available by time alone."""
    least = replica_set.spec.minReadySeconds
    if not least:
        return None
    waits = any(
        is_active(pod) and is_ready(pod) and not is_available(pod, least, now_seconds) for pod in pods
    )
    return least if waits else None
