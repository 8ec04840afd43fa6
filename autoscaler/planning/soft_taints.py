"""The PreferNoSchedule taint of unneeded nodes, by which the scheduler uses them last. Pure.

Source: cluster-autoscaler 1.36, soft taints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from autoscaler.planning import taints
from autoscaler.planning.observation import CloudView
from machinery.api.pb import core


def soft_taint_changes(
    nodes: Iterable[core.Node], view: CloudView, unneeded: Collection[str], count_max: int
) -> list[tuple[str, bool]]:
    """Return at most `count_max` nodes, and whether each gets the taint (True) or loses it."""
    changes = []
    for node in nodes:
        name = node.metadata.name
        going = taints.taint_time(node, taints.TO_BE_DELETED) is not None
        if going or view.group(name) is None:
            continue
        if (taints.taint_time(node, taints.DELETION_CANDIDATE) is not None) is not (name in unneeded):
            changes.append((name, name in unneeded))
    return changes[: max(count_max, 0)]
