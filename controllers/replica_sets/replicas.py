"""The pods that a replica set creates or deletes, and its status. Pure.

A ReplicationController is taken for a ReplicaSet: the fields that are read here have the same names.
Source: kube-controller-manager 1.36, pkg/controller/replicaset; pkg/controller/replication adapts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.controllers.owned_pods.deletion_order import ready_since, to_delete
from nominee.controllers.owned_pods.readiness import is_active, is_available, is_ready
from nominee.machinery.api.objects import get_condition, has_ended, is_terminating
from nominee.machinery.api.pb import apps, core, meta
from nominee.machinery.api.selectors import LabelSelector

BURST_MAX: Final = 500
"""Pods created or deleted in one reconciliation."""


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


def active_on_nodes(related: Iterable[apps.ReplicaSet], pods: Iterable[core.Pod]) -> Mapping[str, int]:
    """Return how many active pods that some of these sets select are on each node.

    Source: getIndirectlyRelatedPods, getPodsRankedByRelatedPodsOnSameNode.
    """
    selectors = [LabelSelector.from_message(each.spec.selector) for each in related]
    return Counter(
        pod.spec.nodeName
        for pod in pods
        if is_active(pod) and any(selector.matches(pod.metadata.labels) for selector in selectors)
    )


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
    status = type(replica_set.status)()
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
    replica_set: apps.ReplicaSet, pods: Sequence[core.Pod], counted_seconds: float, now_seconds: float
) -> float | None:
    """Return after how many seconds the next ready pod is available, None if all are.

    `counted_seconds` is the time for which the status counted them: a pod that has become available since
    is looked at again at once. Source: FindMinNextPodAvailabilityCheck.
    """
    least = replica_set.spec.minReadySeconds
    waiting = [
        pod
        for pod in pods
        if is_active(pod) and is_ready(pod) and not is_available(pod, least, counted_seconds)
    ]
    if not waiting:
        return None
    earliest = min((ready_since(pod) or now_seconds) + least for pod in waiting)
    return max(earliest - now_seconds, 0.0)
