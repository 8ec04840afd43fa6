"""The last write that may have made room for a pod. No I/O.

A scheduler places the pods of a group one after the other, each on the best node for itself, and takes one of
several best nodes at random; a new one tries them in another order. So a group that fits may be refused, and
no event follows: another attempt, as after a restart, may place it. An attempt that began after the last
such write has missed nothing.
Source: kube-scheduler 1.36, the pod group cycle (KEP-4671), selectHost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nominee.lab.history.invariants.checking.pods import same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, get_condition, has_ended
from nominee.machinery.api.pb import core, workloads
from nominee.machinery.api.volume_claims import claims_of
from nominee.machinery.resources.pod_resources import is_extended, node_allocatable, pod_requests

Group = tuple[str, str]
"""The namespace and the name of a pod group."""
_OF_DEVICES: Final = frozenset({kinds.RESOURCE_CLAIM, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS})
_OF_VOLUMES: Final = frozenset({
    *(kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM, kinds.STORAGE_CLASS),
    *(kinds.CSI_NODE, kinds.CSI_DRIVER, kinds.CSI_STORAGE_CAPACITY),
})  # fmt: skip
"""The kinds of which every write counts for a pod that needs some."""
_OF_LABELS: Final = frozenset({"InterPodAffinity", "PodTopologySpread"})
"""The plugins that have registered changes of a waiting pod's own labels (EventsToRegister)."""
_NEVER: Final = float("-inf")
_HARD: Final = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class _Needs:
    """Interests of pods that wait, beside their group and the room of nodes."""

    pods: bool = False
    """Where other pods are: affinity, anti-affinity and spread."""
    devices: bool = False
    volumes: bool = False
    labels: bool = False
    """Their own labels: other pods may keep away from them."""


def last_changes_of_room(
    history: Iterable[Revision], waiting: Iterable[core.Pod], rejectors: Collection[str] = ()
) -> Mapping[Group | None, float]:
    """Return when the last writes may have made room for pods that wait, in seconds since the epoch.

    `rejectors` are the plugins that rejected them.

    Under the name of a group is the last write that took back a nomination of a pod of it, under None the
    last other one.
    """
    needs, times = _needs(list(waiting), rejectors), dict[Group | None, float]()
    for each in history:
        if each.is_readable and _may_make_room(each, needs):
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
    if before is None or pod is None or has_ended(before) != has_ended(pod):
        return None
    if not before.status.nominatedNodeName or pod.status.nominatedNodeName or pod.spec.nodeName:
        return None
    return _group_of(pod) if _asks(before) == _asks(pod) else None


def _needs(pods: list[core.Pod], rejectors: Collection[str]) -> _Needs:
    return _Needs(
        pods=any(map(_looks_at_pods, pods)),
        labels=not _OF_LABELS.isdisjoint(rejectors),
        devices=any(pod.spec.resourceClaims or any(map(is_extended, pod_requests(pod))) for pod in pods),
        volumes=any(map(claims_of, pods)),
    )


def _looks_at_pods(pod: core.Pod) -> bool:
    affinity = pod.spec.affinity
    return bool(
        pod.spec.topologySpreadConstraints
        or affinity.HasField("podAffinity")
        or affinity.HasField("podAntiAffinity")
    )


def _may_make_room(revision: Revision, needs: _Needs) -> bool:
    if revision.kind in _OF_DEVICES:
        return needs.devices
    if revision.kind in _OF_VOLUMES:
        return needs.volumes
    if revision.kind is kinds.POD:
        return _is_freed(revision.before(kinds.POD), revision.after(kinds.POD), needs)
    if revision.kind is kinds.POD_GROUP:  # its status is the result of an attempt
        return _wants(revision.before(kinds.POD_GROUP)) != _wants(revision.after(kinds.POD_GROUP))
    if revision.kind is kinds.NODE:
        return _offers_more(revision.before(kinds.NODE), revision.after(kinds.NODE), needs)
    return False


def _is_freed(before: core.Pod | None, after: core.Pod | None, needs: _Needs) -> bool:
    """Return whether a write of a pod may make room, or change the needs of a pod of a group.

    One that comes, that gets a node or a nomination, or that asks for more takes room only. One that the
    scheduler found no node for, and that is deleted then, had none.
    """
    if after is None:
        return before is not None and not _only_waits(before)
    if before is None:
        return after.spec.HasField("schedulingGroup") or (needs.pods and bool(after.spec.nodeName))
    if has_ended(before) != has_ended(after):
        return True
    if before.status.nominatedNodeName not in ("", after.status.nominatedNodeName, after.spec.nodeName):
        return True
    is_member = after.spec.HasField("schedulingGroup")
    if not after.spec.nodeName:
        is_relabelled = dict(before.metadata.labels) != dict(after.metadata.labels)
        return is_member and ((needs.labels and is_relabelled) or before.spec != after.spec)
    if not before.spec.nodeName:
        return is_member or needs.pods
    is_relabelled = dict(before.metadata.labels) != dict(after.metadata.labels)
    return (needs.pods and is_relabelled) or _has_less(_requests(after), _requests(before))


def _only_waits(pod: core.Pod) -> bool:
    has_node = pod.spec.nodeName or pod.status.nominatedNodeName
    is_refused = get_condition(pod.status.conditions, "PodScheduled") is not None
    return not has_node and is_refused and not condition_is(pod.status.conditions, "PodScheduled")


def _requests(pod: core.Pod) -> Mapping[str, int]:
    """Return the requests that the node counts for a pod, with a resize that the kubelet has not made yet."""
    return pod_requests(pod, use_status=True)


def _has_less(now: Mapping[str, int], before: Mapping[str, int]) -> bool:
    return any(now.get(name, 0) < number for name, number in before.items())


def _asks(pod: core.Pod) -> tuple[object, ...]:
    """Return the parts of a pod that count for its own placement."""
    return dict(pod.metadata.labels), pod.spec.SerializeToString(deterministic=True)


def _wants(group: workloads.PodGroup | None) -> tuple[object, ...]:
    """Return the parts of a pod group that count for the placement of its pods."""
    return () if group is None else (group.metadata.uid, group.spec.SerializeToString(deterministic=True))


def _offers_more(before: core.Node | None, after: core.Node | None, needs: _Needs) -> bool:
    """Return whether a node may take a pod that it did not take before.

    One that goes may leave a domain, and so change the spread of pods.
    """
    if after is None:
        return needs.pods
    if before is None or dict(before.metadata.labels) != dict(after.metadata.labels):
        return True
    return (
        (before.spec.unschedulable and not after.spec.unschedulable)
        or not _repelling(before) <= _repelling(after)
        or _has_less(node_allocatable(before), node_allocatable(after))
        or not set(after.status.declaredFeatures) <= set(before.status.declaredFeatures)
    )


def _repelling(node: core.Node) -> set[tuple[str, str, str]]:
    return {(each.key, each.value, each.effect) for each in node.spec.taints if each.effect in _HARD}
