"""The taints of a node for its conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nominee.machinery.api.pb import core, meta
from nominee.machinery.scheduling.taints import NO_EXECUTE, NO_SCHEDULE
from nominee.machinery.wire.codec import to_json

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

_BY_CONDITION: Final = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_OURS_NO_SCHEDULE: Final = frozenset(
    {key for by_status in _BY_CONDITION.values() for key in by_status.values()} | {UNSCHEDULABLE}
)
_OURS_NO_EXECUTE: Final = frozenset({NOT_READY, UNREACHABLE})


def _no_schedule(node: core.Node) -> set[str]:
    keys = set()
    for condition in node.status.conditions:
        key = _BY_CONDITION.get(condition.type, {}).get(condition.status)
        if key:
            keys.add(key)
    if node.spec.unschedulable:
        keys.add(UNSCHEDULABLE)
    return keys


def _changed(
    taints: Iterable[core.Taint], effect: str, ours: frozenset[str], wanted: set[str], now: meta.Time
) -> list[core.Taint] | None:
    """The node's taints with ours of one effect replaced, or None where they are right."""
    taints = list(taints)
    present = {taint.key for taint in taints if taint.effect == effect and taint.key in ours}
    if present == wanted:
        return None
    kept = [t for t in taints if not (t.effect == effect and t.key in ours and t.key not in wanted)]
    added = [core.Taint(key=key, effect=effect, timeAdded=now) for key in sorted(wanted - present)]
    return kept + added


def plan_no_schedule(node: core.Node, now: meta.Time) -> Sequence[core.Taint] | None:
    """Return all taints of the node, with NoSchedule for its conditions; None for no change."""
    return _changed(node.spec.taints, NO_SCHEDULE, _OURS_NO_SCHEDULE, _no_schedule(node), now)


def plan_no_execute(node: core.Node, ready: str, now: meta.Time) -> Sequence[core.Taint] | None:
    """Return all taints of the node, with NoExecute for a status of Ready; None for no change."""
    key = _BY_CONDITION["Ready"].get(ready)
    return _changed(node.spec.taints, NO_EXECUTE, _OURS_NO_EXECUTE, {key} if key else set(), now)


def has_no_execute(node: core.Node, key: str) -> bool:
    """Return whether a node has a taint NoExecute of this key."""
    return any(taint.key == key and taint.effect == NO_EXECUTE for taint in node.spec.taints)


def taints_patch(node: core.Node, taints: Sequence[core.Taint]) -> dict[str, object]:
    """Return the merge patch of a node's taints; a node that another writer changed is a conflict."""
    return {
        "metadata": {"resourceVersion": node.metadata.resourceVersion},
        "spec": {"taints": [to_json(taint) for taint in taints] or None},
    }
