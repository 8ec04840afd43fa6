"""Pending pods that are alike are looked at once. Source: cluster-autoscaler 1.36, equivalence groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass, field
from typing import TypeVar

from autoscaler.planning.pods import controller_of
from machinery.api.pb import core
from scheduler.framework.types import PodInfo

T = TypeVar("T")


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
            spec = _without_projected_volumes(pod.spec)
            key = (owner.uid, labels, spec.SerializeToString(deterministic=True))
        group = found.get(key)
        if group is None:
            found[key] = EquivalenceGroup([pod], PodInfo(pod))
        else:
            group.pods.append(pod)
    return list(found.values())


def _without_projected_volumes(spec: core.PodSpec) -> core.PodSpec:
    """Return the spec without what does not matter for placement and differs from pod to pod.

    Each pod has a volume `kube-api-access-` with a suffix of its own, by the admission plugin ServiceAccount.
    Source: cluster-autoscaler 1.36, PodSpecSemanticallyEqual.
    """
    projected = {one.name for one in spec.volumes if one.volumeSource.HasField("projected")}
    if not projected:
        return spec
    copy = core.PodSpec()
    copy.CopyFrom(spec)
    _keep(copy.volumes, lambda volume: volume.name not in projected)
    for container in (*copy.initContainers, *copy.containers):
        _keep(container.volumeMounts, lambda mount: mount.name not in projected)
    return copy


def _keep(items: MutableSequence[T], wanted: Callable[[T], bool]) -> None:
    """Delete the items that are not wanted."""
    for index in reversed(range(len(items))):
        if not wanted(items[index]):
            del items[index]
