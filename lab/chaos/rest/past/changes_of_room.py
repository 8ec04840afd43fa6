"""The last write that may have made room for a pod. No I/O.

A scheduler places the pods of a group one after the other, each on the best node for itself, and takes one of
several best nodes at random. So a group that fits may be refused, and no event follows: another attempt, as
after a restart, may place it. An attempt that came after the last such write has missed nothing.
Source: kube-scheduler 1.36, the pod group cycle (KEP-4671), selectHost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nominee.lab.history.revision import Revision
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import has_ended
from nominee.machinery.api.pb import core, workloads
from nominee.machinery.resources.pod_resources import node_allocatable

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


def last_change_of_room(history: Iterable[Revision]) -> float:
    """Return the time of the last write that may have made room, in seconds since the epoch."""
    times = (each.time for each in history if each.is_readable and _may_make_room(each))
    return max(times, default=float("-inf"))


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
