"""Columns of `nominee get`, by kind, after kubectl's (1.36)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nominee.machinery.api.kinds import (
    EVENT,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    Kind,
)
from nominee.machinery.api.pb import apps, core
from nominee.machinery.printing.durations import human_duration
from nominee.machinery.printing.pods import pod_summary
from nominee.machinery.runtime.clock import from_time

NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Columns:
    """A kind's columns between NAME and AGE, and those that `-o wide` adds at the end.

    `cells(obj, now)` with seconds since the epoch.
    """

    header: tuple[str, ...]
    cells: Callable[[Any, float], Sequence[str]]
    wide_header: tuple[str, ...] = ()
    wide_cells: Callable[[Any], Sequence[str]] = lambda _obj: ()


def header(kind: Kind[Any], *, wide: bool, namespaces: bool) -> list[str]:
    """Return the header row."""
    columns = _COLUMNS.get(kind, _PLAIN)
    start = ["NAMESPACE"] if namespaces else []
    return [*start, "NAME", *columns.header, "AGE", *(columns.wide_header if wide else ())]


def row(kind: Kind[Any], obj: Any, now: float, *, wide: bool, namespaces: bool) -> list[str]:
    """Return an object's row; `now` in seconds since the epoch."""
    columns = _COLUMNS.get(kind, _PLAIN)
    metadata = obj.metadata
    start = [metadata.namespace] if namespaces else []
    created = from_time(metadata.creationTimestamp)
    old = human_duration(now - created) if created else "<unknown>"
    return [*start, metadata.name, *columns.cells(obj, now), old, *(columns.wide_cells(obj) if wide else ())]


def _pod(pod: core.Pod, now: float) -> Sequence[str]:
    summary = pod_summary(pod)
    return f"{summary.ready}/{summary.total}", summary.status, summary.restarts.text(now)


def _pod_wide(pod: core.Pod) -> Sequence[str]:
    return pod.status.podIP or NONE, pod.spec.nodeName or NONE, pod.status.nominatedNodeName or NONE


def _node(node: core.Node, _now: float) -> Sequence[str]:
    ready = {"True": "Ready", "False": "NotReady"}
    states = [ready.get(c.status, "NotReady") for c in node.status.conditions if c.type == "Ready"]
    text = states[0] if states else "Unknown"
    if node.spec.unschedulable:
        text += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(label.removeprefix(prefix) for label in node.metadata.labels if label.startswith(prefix))
    return text, ",".join(roles) or NONE, node.status.nodeInfo.kubeletVersion


def _node_wide(node: core.Node) -> Sequence[str]:
    allocatable = node.status.allocatable
    taints = [f"{t.key}{'=' + t.value if t.value else ''}:{t.effect}" for t in node.spec.taints]
    return (
        allocatable["cpu"].string if "cpu" in allocatable else NONE,
        allocatable["memory"].string if "memory" in allocatable else NONE,
        ",".join(taints) or NONE,
    )


def _replica_set(replica_set: apps.ReplicaSet, _now: float) -> Sequence[str]:
    status = replica_set.status
    return str(replica_set.spec.replicas), str(status.replicas), str(status.readyReplicas)


def _claim(claim: core.PersistentVolumeClaim, _now: float) -> Sequence[str]:
    capacity = claim.status.capacity
    return (
        claim.status.phase or "Pending",
        claim.spec.volumeName or NONE,
        capacity["storage"].string if "storage" in capacity else NONE,
        claim.spec.storageClassName or NONE,
    )


def _volume(volume: core.PersistentVolume, _now: float) -> Sequence[str]:
    capacity, claim = volume.spec.capacity, volume.spec.claimRef
    return (
        capacity["storage"].string if "storage" in capacity else NONE,
        volume.status.phase,
        f"{claim.namespace}/{claim.name}" if claim.name else NONE,
        volume.spec.storageClassName or NONE,
    )


def _event(event: core.Event, _now: float) -> Sequence[str]:
    about = event.involvedObject
    return event.type, event.reason, f"{about.kind.lower()}/{about.name}", " ".join(event.message.split())


_PLAIN = Columns((), lambda _obj, _now: ())
_COLUMNS: Mapping[Kind[Any], Columns] = {
    POD: Columns(("READY", "STATUS", "RESTARTS"), _pod, ("IP", "NODE", "NOMINATED NODE"), _pod_wide),
    NODE: Columns(("STATUS", "ROLES", "VERSION"), _node, ("CPU", "MEMORY", "TAINTS"), _node_wide),
    REPLICA_SET: Columns(("DESIRED", "CURRENT", "READY"), _replica_set),
    PERSISTENT_VOLUME_CLAIM: Columns(("STATUS", "VOLUME", "CAPACITY", "STORAGECLASS"), _claim),
    PERSISTENT_VOLUME: Columns(("CAPACITY", "STATUS", "CLAIM", "STORAGECLASS"), _volume),
    PRIORITY_CLASS: Columns(
        ("VALUE", "GLOBAL-DEFAULT"), lambda obj, _now: (str(obj.value), str(obj.globalDefault).lower())
    ),
    EVENT: Columns(("TYPE", "REASON", "OBJECT", "MESSAGE"), _event),
}
