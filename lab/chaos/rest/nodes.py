"""Taints of nodes and the conditions that they stand for. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.chaos.rest.state import Finding, State, in_order, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core

AUTOSCALER: Final = "autoscaler"
LOOP: Final = "/debug/loop"
CLOUD: Final = "cloud"
GROUPS: Final = "/debug/groups"
_TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
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
        if _TO_BE_DELETED in keys:  # The autoscaler leaves the other taint of such a node as it is.
            if node.metadata.name not in document["deleting"]:
                yield Finding(name_of(node), f"has the taint {_TO_BE_DELETED}, and is not being deleted")
        elif _CANDIDATE in keys and node.metadata.name not in document["unneeded"]:
            yield Finding(name_of(node), f"has the taint {_CANDIDATE}, and is not unneeded")


def group_sizes(state: State) -> Iterator[Finding]:
    """Find node groups of another size than their instances are, or of one beyond their limits."""
    for name, group in state.debug.get((CLOUD, GROUPS), {}).items():
        target, count = group["target"], len(group["instances"])
        if target != count:
            yield Finding(f"node group {name}", f"has the size {target} and {count} instances")
        # A group may begin below its minimum: the autoscaler does not fill it up.
        if target > group["max"] or target < min(group["min"], group["begunWith"]):
            limits = f"{group['min']} to {group['max']}"
            yield Finding(f"node group {name}", f"has the size {target}, and its limits are {limits}")
