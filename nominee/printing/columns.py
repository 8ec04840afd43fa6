"""What `nominee get` shows of an object: columns per kind, after kubectl's (1.36)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machinery.api.kinds import (
    EVENT,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    Kind,
)
from machinery.api.pb import core
from machinery.runtime.clock import from_time
from nominee.printing.tables import age

NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Columns:
    """A kind's columns between NAME and AGE, and those that `-o wide` adds at the end."""

    header: tuple[str, ...]
    cells: Callable[[Any], Sequence[str]]
    wide_header: tuple[str, ...] = ()
    wide_cells: Callable[[Any], Sequence[str]] = lambda _obj: ()


def header(kind: Kind[Any], *, wide: bool, namespaces: bool) -> list[str]:
    """The header row."""
    columns = _COLUMNS.get(kind, _PLAIN)
    start = ["NAMESPACE"] if namespaces else []
    return [*start, "NAME", *columns.header, "AGE", *(columns.wide_header if wide else ())]


def row(kind: Kind[Any], obj: Any, now: float, *, wide: bool, namespaces: bool) -> list[str]:
    """An object's row; `now` in seconds since the epoch."""
    columns = _COLUMNS.get(kind, _PLAIN)
    metadata = obj.metadata
    start = [metadata.namespace] if namespaces else []
    created = from_time(metadata.creationTimestamp)
    old = age(now - created) if created else "<unknown>"
    return [*start, metadata.name, *columns.cells(obj), old, *(columns.wide_cells(obj) if wide else ())]


def pod_status(pod: core.Pod) -> str:
    """kubectl's STATUS: the phase, or what is more telling."""
    status = pod.status
    text = status.reason or status.phase or "Unknown"
    if any(c.type == "PodScheduled" and c.reason == "SchedulingGated" for c in status.conditions):
        text = "SchedulingGated"
    running = False
    for container in reversed(status.containerStatuses):
        state = container.state
        if state.waiting.reason:
            text = state.waiting.reason
        elif state.terminated.reason:
            text = state.terminated.reason
        elif state.HasField("terminated"):
            text = f"ExitCode:{state.terminated.exitCode}"
        elif container.ready and state.HasField("running"):
            running = True
    if text == "Completed" and running:
        text = "Running"
    if pod.metadata.HasField("deletionTimestamp"):
        text = "Unknown" if status.reason == "NodeLost" else "Terminating"
    return text


def _pod(pod: core.Pod) -> Sequence[str]:
    statuses = pod.status.containerStatuses
    ready = sum(container.ready for container in statuses)
    restarts = sum(container.restartCount for container in statuses)
    return f"{ready}/{len(pod.spec.containers)}", pod_status(pod), str(restarts)


def _pod_wide(pod: core.Pod) -> Sequence[str]:
    return pod.status.podIP or NONE, pod.spec.nodeName or NONE, pod.status.nominatedNodeName or NONE


def _node(node: core.Node) -> Sequence[str]:
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


def _replica_set(replica_set: Any) -> Sequence[str]:
    status = replica_set.status
    return str(replica_set.spec.replicas), str(status.replicas), str(status.readyReplicas)


def _claim(claim: core.PersistentVolumeClaim) -> Sequence[str]:
    capacity = claim.status.capacity
    return (
        claim.status.phase or "Pending",
        claim.spec.volumeName or NONE,
        capacity["storage"].string if "storage" in capacity else NONE,
        claim.spec.storageClassName or NONE,
    )


def _volume(volume: core.PersistentVolume) -> Sequence[str]:
    capacity, claim = volume.spec.capacity, volume.spec.claimRef
    return (
        capacity["storage"].string if "storage" in capacity else NONE,
        volume.status.phase,
        f"{claim.namespace}/{claim.name}" if claim.name else NONE,
        volume.spec.storageClassName or NONE,
    )


def _event(event: core.Event) -> Sequence[str]:
    about = event.involvedObject
    return event.type, event.reason, f"{about.kind.lower()}/{about.name}", " ".join(event.message.split())


_PLAIN = Columns((), lambda _obj: ())
_COLUMNS: Mapping[Kind[Any], Columns] = {
    POD: Columns(("READY", "STATUS", "RESTARTS"), _pod, ("IP", "NODE", "NOMINATED NODE"), _pod_wide),
    NODE: Columns(("STATUS", "ROLES", "VERSION"), _node, ("CPU", "MEMORY", "TAINTS"), _node_wide),
    REPLICA_SET: Columns(("DESIRED", "CURRENT", "READY"), _replica_set),
    PERSISTENT_VOLUME_CLAIM: Columns(("STATUS", "VOLUME", "CAPACITY", "STORAGECLASS"), _claim),
    PERSISTENT_VOLUME: Columns(("CAPACITY", "STATUS", "CLAIM", "STORAGECLASS"), _volume),
    PRIORITY_CLASS: Columns(
        ("VALUE", "GLOBAL-DEFAULT"), lambda obj: (str(obj.value), str(obj.globalDefault).lower())
    ),
    EVENT: Columns(("TYPE", "REASON", "OBJECT", "MESSAGE"), _event),
}
