"""The row of an object in the time line: the few values that the page shows of it. No I/O.

A field that has its default value is left out: "" or 0 or false, or an empty map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import (
    CPU,
    MEMORY,
    PODS,
    RESIZE_PENDING,
    Resources,
    is_extended,
    node_allocatable,
    pod_requests,
)
from nominee.machinery.resources.quantity import QuantityError
from nominee.machinery.runtime.clock import from_time, rfc3339
from nominee.machinery.wire.values.scalars import Json

Row = dict[str, Json]

ZONE: Final = "topology.kubernetes.io/zone"
GROUPS: Final = (
    "nominee.dev/node-group",
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)
"""Labels that name a node's group, of this project's cloud and of those from which state is imported."""
_RESIZE_RUNS: Final = "PodResizeInProgress"
Conditions = Mapping[str, core.PodCondition]
_BARS: Final[Mapping[str, tuple[str, str]]] = {
    "phase": ("status", "phase"),
    "node": ("spec", "nodeName"),
    "nominated": ("status", "nominatedNodeName"),
    "holder": ("spec", "holderIdentity"),
    "replicas": ("spec", "replicas"),
}
"""Fields whose values are bars, besides those of taints and conditions, by the name of the bar."""


def row(obj: Message) -> Row:
    """Return the row of an object."""
    conditions = _conditions(obj)
    found: Row = {"rows": _bars(obj, conditions)}
    if isinstance(obj, core.Pod):
        found |= _pod(obj, conditions)
    elif isinstance(obj, core.Node):
        found |= _node(obj, conditions)
    return {name: value for name, value in found.items() if value}


def _bars(obj: Message, conditions: Conditions) -> dict[str, str]:
    """Return the values that are bars of the time line, by the name of the bar."""
    found = {}
    for name, part, field in _fields_of(obj.DESCRIPTOR):
        message = getattr(obj, part)
        value = getattr(message, field)
        if value or (name == "replicas" and message.HasField(field)):
            found[name] = str(value)
    metadata = metadata_of(obj)
    if metadata.HasField("deletionTimestamp"):
        found["terminating"] = rfc3339(metadata.deletionTimestamp)
    if isinstance(obj, core.Node) and obj.spec.taints:
        found["taints"] = ", ".join(f"{each.key}:{each.effect}" for each in obj.spec.taints)
    for name, each in conditions.items():
        found[name] = f"{each.status} {each.reason}".rstrip()
    return found


@lru_cache(maxsize=256)
def _fields_of(kind: Descriptor) -> tuple[tuple[str, str, str], ...]:
    """Return the bars of fields that a kind has: name, part (spec or status) and field."""
    return tuple((name, *path) for name, path in _BARS.items() if path[1] in _inner(kind, path[0]))


@lru_cache(maxsize=256)
def _has_conditions(kind: Descriptor) -> bool:
    """Return whether the status of a kind has conditions with a type and a reason."""
    status = kind.fields_by_name.get("status")
    return bool(status and status.message_type and "reason" in _inner(status.message_type, "conditions"))


def _inner(kind: Descriptor, part: str) -> Mapping[str, FieldDescriptor]:
    """Return the fields of a part of a kind; none if it has no such part."""
    found = kind.fields_by_name.get(part)
    return found.message_type.fields_by_name if found is not None and found.message_type is not None else {}


def _conditions(obj: Message) -> Conditions:
    """Return the conditions of an object by type; they are read once, since each access makes objects."""
    if not _has_conditions(obj.DESCRIPTOR):
        return {}
    found: Iterable[core.PodCondition] = obj.status.conditions  # type: ignore[attr-defined]  # Message does not declare it
    return {each.type: each for each in found}


def _node(node: core.Node, conditions: Conditions) -> Row:
    labels, ready = node.metadata.labels, conditions.get("Ready")
    try:
        allocatable = node_allocatable(node)
    except QuantityError:  # the API server refuses it; the file of another writer may have it
        allocatable = {}
    return {
        **_resources(allocatable),
        "pods": allocatable.get(PODS, 0),
        "zone": labels.get(ZONE, ""),
        "group": next((labels[name] for name in GROUPS if name in labels), ""),
        "ready": ready.status if ready is not None else "",
        "conditions": {
            name: f"{each.status} {each.reason}".rstrip()
            for name, each in conditions.items()
            if each.status != "False" and name != "Ready"
        },
        "taints": [
            f"{each.key}{'=' if each.value else ''}{each.value}:{each.effect}" for each in node.spec.taints
        ],
        "unschedulable": node.spec.unschedulable,
        "version": node.status.nodeInfo.kubeletVersion,
    }


def _pod(pod: core.Pod, conditions: Conditions) -> Row:
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    scheduled, pending = conditions.get("PodScheduled"), conditions.get(RESIZE_PENDING)
    runs, ready = conditions.get(_RESIZE_RUNS), conditions.get("Ready")
    is_refused = scheduled is not None and scheduled.status == "False"
    shown = (scheduled if is_refused else pending or runs) or status
    node, nominated = spec.nodeName, status.nominatedNodeName
    resize = (
        pending.reason if pending else ("Error" if runs.reason == "Error" else "InProgress") if runs else ""
    )
    try:
        found: Row = dict(_resources(_requests(pod)))
        if resize:
            found["desired"] = _desired(pod)
    except QuantityError:  # as a node's
        found = {}
    return {
        **found,
        "uid": metadata.uid,
        "node": node,
        "nominated": nominated,
        "phase": status.phase,
        "priority": spec.priority,
        "owner": next(
            (f"{each.kind}/{each.name}" for each in metadata.ownerReferences if each.controller), ""
        ),
        "ready": ready is not None and ready.status == "True",
        "terminating": from_time(metadata.deletionTimestamp) if metadata.HasField("deletionTimestamp") else 0,
        "reason": shown.reason,
        "message": shown.message,
        "gated": bool(spec.schedulingGates),
        # A pod nominated for preemption has PodScheduled=False; any other is about to be bound.
        "prebind": bool(nominated) and not node and not is_refused,
        "resize": resize,
    }


def _requests(pod: core.Pod) -> Resources:
    """Return the requests that a node counts for a pod.

    Many pods have containers with the same resources and nothing else that counts, as those of a template
    before they run: these are added up once.
    """
    spec, status = pod.spec, pod.status
    if (
        spec.initContainers
        or spec.overhead
        or spec.HasField("resources")
        or status.containerStatuses
        or status.HasField("resources")
    ):
        return pod_requests(pod, use_status=True, pod_level_status=True)
    return _sum_of(tuple([each.resources.SerializeToString() for each in spec.containers]))


@lru_cache(maxsize=1024)
def _sum_of(resources: tuple[bytes, ...]) -> Resources:
    """Return the requests of a pod whose containers have these serialized resources, and nothing else."""
    pod = core.Pod()
    for each in resources:
        pod.spec.containers.add().resources.ParseFromString(each)
    return pod_requests(pod)


def _desired(pod: core.Pod) -> Mapping[str, int] | None:
    """Return the requests of a resize, if the kubelet has allocated something else."""
    desired = pod_requests(pod)
    allocated = pod_requests(pod, use_status=True, use_desired=False, pod_level_status=True)
    differs = any(desired.get(name) != allocated.get(name) for name in (CPU, MEMORY))
    return {name: desired.get(name, 0) for name in (CPU, MEMORY)} if differs else None


def _resources(found: Resources) -> Row:
    devices = {name: count for name, count in found.items() if count and is_extended(name)}
    return {"cpu": found.get(CPU, 0), "memory": found.get(MEMORY, 0), "devices": devices}
