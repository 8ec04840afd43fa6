"""Taints of nodes and the conditions that they stand for. No I/O."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nominee.lab.chaos.rest.state import Finding, State, in_order, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import Json

AUTOSCALER: Final = "autoscaler"
LOOP: Final = "/debug/loop"
CLOUD: Final = "cloud"
GROUPS: Final = "/debug/groups"
EVENTS: Final = "events"
"""Where a group is too small: messages of the autoscaler's events about instances that never had a node.

Each as often as it was sent."""
GIVEN_UP: Final = frozenset({"DeleteUnregistered", "ScaleUpFailed", "ScaleUpTimedOut"})
"""The reasons of these events."""
_TIMED_OUT: Final = "Nodes added to group "
_FAILED: Final = re.compile(r"Failed adding (\d+) nodes to group ")
"""How the messages of ScaleUpTimedOut and ScaleUpFailed begin."""
DOUBTFUL: Final = "since a write of the taint was reported as failed"
"""The end of a finding about a taint that the autoscaler itself does not know (`doubtfulTaints`)."""
TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
_PREFIX: Final = "node.kubernetes.io/"
_OF_READY: Final = {"False": "not-ready", "Unknown": "unreachable"}
_PRESSURES: Final = {
    "MemoryPressure": "memory-pressure",
    "DiskPressure": "disk-pressure",
    "PIDPressure": "pid-pressure",
    "NetworkUnavailable": "network-unavailable",
}
_OURS: Final = frozenset({*_OF_READY.values(), *_PRESSURES.values(), "unschedulable"})


def condition_taints(state: State) -> Iterator[Finding]:
    """Find nodes whose taints do not stand for their conditions and for `spec.unschedulable`."""
    if CONTROLLERS not in state.running:
        return
    for node in state.of(kinds.NODE):
        desired = _desired(node)
        present = {
            taint.key.removeprefix(_PREFIX)
            for taint in node.spec.taints
            if taint.effect == "NoSchedule" and taint.key.removeprefix(_PREFIX) in _OURS
        }
        if present - desired:
            yield Finding(name_of(node), f"has taints without a reason: {in_order(present - desired)}")
        if desired - present:
            yield Finding(name_of(node), f"lacks the taints {in_order(desired - present)}")


def _desired(node: core.Node) -> set[str]:
    found = {"unschedulable"} if node.spec.unschedulable else set()
    ready = get_condition(node.status.conditions, "Ready")
    if ready is not None and ready.status in _OF_READY:
        found.add(_OF_READY[ready.status])
    for condition in node.status.conditions:
        if condition.status == "True" and condition.type in _PRESSURES:
            found.add(_PRESSURES[condition.type])
    return found


def autoscaler_loops(state: State) -> Iterator[Finding]:
    """Find an autoscaler whose loops fail although its cloud runs, and taints of it that have no reason."""
    document = state.debug.get((AUTOSCALER, LOOP))
    if document is None or not document["at"]:
        return
    if document["error"]:
        if CLOUD in state.running:
            yield Finding("the autoscaler", f"fails in its loops: {document['error']}")
        return
    for node in state.of(kinds.NODE):
        keys = {taint.key for taint in node.spec.taints}
        if TO_BE_DELETED in keys:  # The autoscaler leaves the other taint of such a node as it is.
            if node.metadata.name not in document["deleting"]:
                is_doubtful = node.metadata.name in document["doubtfulTaints"]
                why = f", {DOUBTFUL}" if is_doubtful else ""
                yield Finding(name_of(node), f"has the taint {TO_BE_DELETED}, and is not being deleted{why}")
        elif DELETION_CANDIDATE in keys and node.metadata.name not in document["unneeded"]:
            yield Finding(name_of(node), f"has the taint {DELETION_CANDIDATE}, and is not unneeded")


def group_sizes(state: State) -> Iterator[Finding]:
    """Find node groups of another size than their instances are, or of one beyond their limits.

    A group may become smaller than its minimum: when the autoscaler gives up an instance that has no node, it
    does not ask how many others it is deleting (cluster-autoscaler 1.36, removeOldUnregisteredNodes). So many
    as its events count may be missing, and all whose instances a step deletes.
    """
    groups: Json = state.debug.get((CLOUD, GROUPS), {})
    messages: Sequence[str] = state.debug.get((AUTOSCALER, EVENTS), ())
    for name, group in groups.items():
        target, count = group["target"], len(group["instances"])
        if target != count:
            yield Finding(f"node group {name}", f"has the size {target} and {count} instances")
        given_up = sum(_given_up(each) for each in messages if _is_about(each, name))
        is_emptied = name in state.expectations.emptied_groups
        if target > group["max"] or (target < _least(group) - given_up and not is_emptied):
            limits = f"{group['min']} to {group['max']}"
            yield Finding(f"node group {name}", f"has the size {target}, and its limits are {limits}")


def too_small(groups: Json) -> list[str]:
    """Return the groups below their minimum, but for the failures that the cloud counts."""
    return [name for name, group in groups.items() if group["target"] < _least(group)]


def _least(group: Json) -> int:
    """Return how small a group may be.

    It may begin below its minimum: the autoscaler does not fill it up. From the largest size on that it has
    had, or the minimum, it does not become smaller. Instances that could not be created are deleted whatever
    the minimum is, and without an event if the autoscaler that sees them has not asked for them
    (cluster-autoscaler 1.36, deleteCreatedNodesWithErrors): the cloud counts those that no later increase has
    replaced.
    """
    return int(min(group["min"], group["largest"])) - int(group.get("failed", 0))


def _is_about(message: str, group: str) -> bool:
    """Return whether a message names a group, or an instance of it: their names begin with the group's."""
    return re.search(rf"(?<![\w-]){re.escape(group)}(-\d+)?(?![\w-])", message) is not None


def _given_up(message: str) -> float:
    """Return how many instances an event counts as given up, by its message; a timeout has no number."""
    if message.startswith(_TIMED_OUT):
        return math.inf
    failed = _FAILED.match(message)
    return 1 if failed is None else int(failed[1])


def has_drains(state: State) -> bool:
    """Return whether the autoscaler deletes a node.

    It asks every 5 s whether the pods are gone, and again for an eviction that a budget refuses, until
    --max-pod-eviction-time is over. One that starts takes the taint off the node (cluster-autoscaler 1.36,
    cleanUpIfRequired).
    """
    document = state.debug.get((AUTOSCALER, LOOP))
    return bool(document and document["deleting"])


def recheck_seconds(state: State, steady_seconds: float) -> float:
    """Return in how many seconds the autoscaler asks again whether nodes can be removed; 0.0 if it need not.

    A node that it has found unremovable is not simulated again until --unremovable-node-recheck-timeout is
    over, five minutes by default; one that starts asks at once (cluster-autoscaler 1.36, unremovable nodes).
    The answers of the last `steady_seconds`, in which nothing has changed, are those of a new process.
    """
    document = state.debug.get((AUTOSCALER, LOOP)) or {}
    left: Mapping[str, float] = document.get("recheckSeconds", {})
    old = (each for each in left.values() if document["recheckTimeout"] - each > steady_seconds)
    return max(old, default=0.0)
