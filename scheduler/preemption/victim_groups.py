"""Find the pods that are evicted together: a pod alone, or its whole PodGroup, on any node.

Groups are applied to the victims of a deferred resize only (KEP-5836, "Scope of Interaction with
Workload-Aware Preemption"): preemption by new pods evicts single pods here. Source of the disruption mode:
KEP-5710; kube-scheduler 1.37, DomainVictim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.scheduler.framework.cluster.scheduling_groups import group_of
from nominee.scheduler.framework.interface import Candidate, Handle
from nominee.scheduler.framework.types import NodeInfo, PodInfo

WHOLE_GROUP: Final = "PodGroup"


class Victim(NamedTuple):
    """Pods that are evicted together or not at all; the first one is on the node in question.

    `in_group`: they belong to a PodGroup, whose priority counts instead of their own.
    """

    pods: tuple[PodInfo, ...]
    priority: int
    in_group: bool = False


def single_victims(node: NodeInfo, priority: int) -> list[Victim]:
    """Return the pods of the node that have a lower priority, each alone."""
    return [Victim((pod,), pod.priority) for pod in node.pods.values() if pod.priority < priority]


class VictimGroups:
    """The groups as the present cycle's snapshot has them."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._is_on = handle.gates.enabled("WorkloadAwarePreemption")

    def victims(self, node: NodeInfo, preemptor: PodInfo) -> list[Victim]:
        """Return the pods and groups with pods on the node that have a lower priority than the preemptor.

        Never the preemptor's own group.
        """
        if not self._is_on:
            return single_victims(node, preemptor.priority)
        found: list[Victim] = []
        seen = {preemptor.uid}
        for pod in node.pods.values():
            if pod.uid in seen:
                continue
            victim = self._victim(pod)
            uids = {each.uid for each in victim.pods}
            if victim.priority < preemptor.priority and preemptor.uid not in uids:
                found.append(victim)
            seen |= uids
        return found

    def _victim(self, pod: PodInfo) -> Victim:
        """Return the pod with all that go when it does."""
        key = group_of(pod.pod)
        group = None if key is None else self._handle.lister(kinds.POD_GROUP).get(key.name, key.namespace)
        if key is None or group is None:
            return Victim((pod,), pod.priority, in_group=key is not None)
        pods = (pod, *self._others(pod, key)) if group.spec.disruptionMode == WHOLE_GROUP else (pod,)
        has_priority = group.spec.HasField("priority")
        priority = group.spec.priority if has_priority else max(each.priority for each in pods)
        return Victim(pods, priority, in_group=True)

    def _others(self, pod: PodInfo, key: ObjectKey) -> Iterator[PodInfo]:
        """Return the other pods of the group that have a node."""
        for uid, member in self._handle.scheduling_groups.members(key).items():
            node = self._handle.snapshot.get(member.spec.nodeName)
            if uid != pod.uid and node is not None and uid in node.pods:
                yield node.pods[uid]

    def own_node_last(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the victims on other nodes first.

        The preemptor is held back until the deletion of the last victim begins, and only a victim on its own
        node wakes it.
        """
        victims = sorted(candidate.victims, key=lambda pod: pod.pod.spec.nodeName == candidate.node)
        return replace(candidate, victims=tuple(victims))
