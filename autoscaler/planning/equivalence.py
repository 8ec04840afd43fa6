"""Pending pods that are alike are looked at once. Source: cluster-autoscaler 1.36, equivalence groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from autoscaler.planning.pods import controller_of
from machinery.pb import core
from scheduler.framework.types import PodInfo


@dataclass(slots=True, eq=False)
class EquivalenceGroup:
    """Pods of one controller with equal labels and specs; a pod without a controller is alone."""

    pods: list[core.Pod]
    sample: PodInfo
    rejected: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Why a new node of a group would not do, by group id."""
    fits: list[str] = field(default_factory=list)
    """Ids of groups of which a new node would do."""


def equivalence_groups(pods: Iterable[core.Pod]) -> list[EquivalenceGroup]:
    """In the order of their first pods."""
    found: dict[object, EquivalenceGroup] = {}
    for pod in pods:
        owner = controller_of(pod)
        key: object = pod.metadata.uid
        if owner is not None:
            labels = tuple(sorted(pod.metadata.labels.items()))
            key = (owner.uid, labels, pod.spec.SerializeToString(deterministic=True))
        group = found.get(key)
        if group is None:
            found[key] = EquivalenceGroup([pod], PodInfo(pod))
        else:
            group.pods.append(pod)
    return list(found.values())
