"""The last write that may have made room for a pod. No I/O.

A scheduler places the pods of a group one after the other, each on the best node for itself, and takes one of
several best nodes at random. So a group that fits may be refused, and no event follows: another attempt, as
after a restart, may place it. An attempt that came after the last such write has missed nothing.
Source: kube-scheduler 1.36, the pod group cycle (KEP-4671), selectHost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nominee.lab.history.invariants.checking.pods import same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import has_ended
from nominee.machinery.api.pb import core, workloads
from nominee.machinery.resources.pod_resources import node_allocatable

Group = tuple[str, str]
"""The namespace and the name of a pod group."""
_NEVER: Final = float("-inf")
_WHOLE: Final = frozenset(
    {
        kinds.RESOURCE_CLAIM,
        kinds.RESOURCE_SLICE,
        kinds.DEVICE_CLASS,
        kinds.PERSISTENT_VOLUME,
        kinds.PERSISTENT_VOLUME_CLAIM,
        kinds.STORAGE_CLASS,
    }
)
"""The kinds of which every write counts."""


def last_changes_of_room(history: Iterable[Revision]) -> Mapping[Group | None, float]:
    """Return the times of the last writes that may have made room, in seconds since the epoch.

    Under the name of a group is the last write that took back a nomination of a pod of it, under None the
    last other one.
    """
    times: dict[Group | None, float] = {}
    for each in history:
        if each.is_readable and _may_make_room(each):
            times[_group_that_lost_a_nomination(each)] = each.time
    return times


def last_for(pod: core.Pod, times: Mapping[Group | None, float]) -> float:
    """Return when the last write may have made room for the group of a pod, but for its own attempts."""
    own = _group_of(pod)
    return max((time for group, time in times.items() if group is None or group != own), default=_NEVER)


def _group_of(pod: core.Pod) -> Group | None:
    has_group = pod.spec.HasField("schedulingGroup")
    return (pod.metadata.namespace, pod.spec.schedulingGroup.podGroupName) if has_group else None


def _group_that_lost_a_nomination(revision: Revision) -> Group | None:
    """Return the group of a pod whose nomination was taken back, where nothing else of it has changed."""
    before, pod = same_pod_before(revision), revision.after(kinds.POD)
    if before is None or pod is None or pod.status.nominatedNodeName:
        return None
    return _group_of(pod) if _needs(before)[:-1] == _needs(pod)[:-1] else None


def _may_make_room(revision: Revision) -> bool:
    if revision.kind in _WHOLE:
        return True
    if revision.kind is kinds.POD:
        return _needs(revision.before(kinds.POD)) != _needs(revision.after(kinds.POD))
    if revision.kind is kinds.POD_GROUP:  # its status is the result of an attempt
        return _wants(revision.before(kinds.POD_GROUP)) != _wants(revision.after(kinds.POD_GROUP))
    if revision.kind is kinds.NODE:
        return _offers(revision.before(kinds.NODE)) != _offers(revision.after(kinds.NODE))
    return False


def _needs(pod: core.Pod | None) -> tuple[object, ...]:
    """Return the parts of a pod that count for the room of others, or for its own placement."""
    if pod is None:
        return ()
    labels = dict(pod.metadata.labels)
    return (
        has_ended(pod),
        labels,
        pod.spec.SerializeToString(deterministic=True),
        pod.status.nominatedNodeName,
    )


def _wants(group: workloads.PodGroup | None) -> tuple[object, ...]:
    """Return the parts of a pod group that count for the placement of its pods."""
    return () if group is None else (group.metadata.uid, group.spec.SerializeToString(deterministic=True))


def _offers(node: core.Node | None) -> tuple[object, ...]:
    """Return the parts of a node that count for the pods that it may get."""
    if node is None:
        return ()
    labels = dict(node.metadata.labels)
    return labels, node.spec.SerializeToString(deterministic=True), node_allocatable(node)
