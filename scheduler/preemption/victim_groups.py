"""Find the pods that are evicted together with a victim: those of its PodGroup, on any node.

Applied to the victims of a deferred resize only (KEP-5836, "Scope of Interaction with Workload-Aware
Preemption"): preemption by new pods evicts single pods here. Source of the disruption mode: KEP-5710.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from machinery.api import kinds
from scheduler.framework.interface import Candidate, Handle
from scheduler.framework.scheduling_groups import group_of
from scheduler.framework.types import PodInfo
from scheduler.preemption.importance import by_importance

WHOLE_GROUP: Final = "PodGroup"


class VictimGroups:
    """The groups as the present cycle's snapshot has them."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._is_on = handle.gates.enabled("WorkloadAwarePreemption")

    def evicted_with(self, victim: PodInfo) -> list[PodInfo]:
        """Return the pods that go when this one does, itself included."""
        key = group_of(victim.pod) if self._is_on else None
        if key is None:
            return [victim]
        group = self._handle.lister(kinds.POD_GROUP).get(key.name, key.namespace)
        if group is None or group.spec.disruptionMode != WHOLE_GROUP:
            return [victim]
        found = {victim.uid: victim}
        for uid, member in self._handle.scheduling_groups.members(key).items():
            node = self._handle.snapshot.get(member.spec.nodeName)
            if node is not None and uid in node.pods:
                found.setdefault(uid, node.pods[uid])
        return list(found.values())

    def is_below(self, victim: PodInfo, priority: int) -> bool:
        """Return whether the pod, and all that are evicted with it, have a lower priority."""
        return all(pod.priority < priority for pod in self.evicted_with(victim))

    def widened(self, candidate: Candidate, now: float) -> Candidate:
        """Return the candidate with the whole groups of its victims, those on other nodes first.

        The preemptor is held back until the deletion of the last victim begins, and only a victim on its own
        node wakes it.
        """
        victims = {pod.uid: pod for victim in candidate.victims for pod in self.evicted_with(victim)}
        if len(victims) == len(candidate.victims):
            return candidate
        ordered = by_importance(list(victims.values()), now)
        ordered.sort(key=lambda pod: pod.pod.spec.nodeName == candidate.node)
        return replace(candidate, victims=tuple(ordered))
