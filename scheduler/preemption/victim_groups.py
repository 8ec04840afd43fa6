"""Find the pods that are evicted together: a pod alone, or its whole PodGroup, on any node.

Groups are applied to the victims of a deferred resize only (KEP-5836, "Scope of Interaction with
Workload-Aware Preemption"): preemption by new pods evicts single pods here. Source of the disruption mode:
KEP-5710; kube-scheduler 1.37, DomainVictim.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from machinery.api import kinds
from scheduler.framework.interface import Candidate, Handle
from scheduler.framework.scheduling_groups import group_of
from scheduler.framework.types import NodeInfo, PodInfo

WHOLE_GROUP: Final = "PodGroup"

Victim = tuple[PodInfo, ...]
"""Pods that are evicted together or not at all; one of them at least is on the node in question."""


def single_victims(node: NodeInfo, priority: int) -> list[Victim]:
    """Return the pods of the node that have a lower priority, each alone."""
    return [(pod,) for pod in node.pods.values() if pod.priority < priority]


class VictimGroups:
    """The groups as the present cycle's snapshot has them."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._is_on = handle.gates.enabled("WorkloadAwarePreemption")

    def victims(self, node: NodeInfo, priority: int) -> list[Victim]:
        """Return the pods and the groups with pods on the node all of which have a lower priority."""
        if not self._is_on:
            return single_victims(node, priority)
        found: list[Victim] = []
        seen: set[str] = set()
        for pod in node.pods.values():
            if pod.priority >= priority or pod.uid in seen:
                continue
            victim = self._evicted_with(pod)
            seen.update(each.uid for each in victim)
            if all(each.priority < priority for each in victim):
                found.append(victim)
        return found

    def _evicted_with(self, pod: PodInfo) -> Victim:
        """Return the pods that go when this one does, itself first."""
        key = group_of(pod.pod)
        if key is None:
            return (pod,)
        group = self._handle.lister(kinds.POD_GROUP).get(key.name, key.namespace)
        if group is None or group.spec.disruptionMode != WHOLE_GROUP:
            return (pod,)
        found = {pod.uid: pod}
        for uid, member in self._handle.scheduling_groups.members(key).items():
            node = self._handle.snapshot.get(member.spec.nodeName)
            if node is not None and uid in node.pods:
                found.setdefault(uid, node.pods[uid])
        return tuple(found.values())

    def own_node_last(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the victims on other nodes first.

        The preemptor is held back until the deletion of the last victim begins, and only a victim on its own
        node wakes it.
        """
        victims = sorted(candidate.victims, key=lambda pod: pod.pod.spec.nodeName == candidate.node)
        return replace(candidate, victims=tuple(victims))
