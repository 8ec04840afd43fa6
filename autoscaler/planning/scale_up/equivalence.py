"""Equivalence groups of pending pods, which are simulated once. Pure.

Source: cluster-autoscaler 1.36, core/scaleup/equivalence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass, field
from typing import TypeVar

from nominee.machinery.api.objects import controller_of, copy_of
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.types import PodInfo

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class EquivalenceGroup:
    """Pods of one controller with equal labels and specs; a pod without a controller has its own group."""

    pods: list[core.Pod]
    sample: PodInfo
    scheduling_errors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Why the pods do not fit on a new node, by ID of the node group."""
    schedulable_groups: list[str] = field(default_factory=list)
    """IDs of the node groups whose new nodes the pods fit on."""


def equivalence_groups(pods: Iterable[core.Pod]) -> list[EquivalenceGroup]:
    """Group pods, in the order of each group's first pod."""
    groups: dict[object, EquivalenceGroup] = {}
    for pod in pods:
        owner = controller_of(pod)
        key: object = pod.metadata.uid
        if owner is not None:
            labels = tuple(sorted(pod.metadata.labels.items()))
            spec = _without_projected_volumes(pod.spec)
            key = (owner.uid, labels, spec.SerializeToString(deterministic=True))
        group = groups.get(key)
        if group is None:
            groups[key] = EquivalenceGroup([pod], PodInfo(pod))
        else:
            group.pods.append(pod)
    return list(groups.values())


def _without_projected_volumes(spec: core.PodSpec) -> core.PodSpec:
    """Return the spec without projected volumes, which do not matter for scheduling and differ between pods.

    The admission plugin ServiceAccount gives each pod a volume `kube-api-access-` with a random suffix.
    Source: cluster-autoscaler 1.36, PodSpecSemanticallyEqual.
    """
    projected = {one.name for one in spec.volumes if one.volumeSource.HasField("projected")}
    if not projected:
        return spec
    copy = copy_of(spec)
    _retain(copy.volumes, lambda volume: volume.name not in projected)
    for container in (*copy.initContainers, *copy.containers):
        _retain(container.volumeMounts, lambda mount: mount.name not in projected)
    return copy


def _retain(items: MutableSequence[T], predicate: Callable[[T], bool]) -> None:
    """Delete the items that do not satisfy the predicate."""
    for index in reversed(range(len(items))):
        if not predicate(items[index]):
            del items[index]
