"""How much of a node its pods ask for. Source: cluster-autoscaler 1.36, simulator utilization."""

from __future__ import annotations

from autoscaler.planning import pods
from scheduler.framework.resource_columns import CPU, MEMORY
from scheduler.framework.types import NodeInfo

RESOURCES = (CPU, MEMORY)


def utilization(
    node: NodeInfo, now: float, *, skip_daemons: bool = False, skip_mirrors: bool = False
) -> float | None:
    """The larger share of cpu and memory, requests of allocatable; None for a node that has none.

    Skipped pods count neither above nor below the line. Pods that should be gone by now do not count.
    """
    shares = []
    for column in RESOURCES:
        whole, used = node.allocatable_of(column), 0
        if whole == 0:
            return None
        for info in node.pods.values():
            amount = dict(info.requests).get(column, 0)
            if (skip_daemons and pods.is_daemon(info.pod)) or (skip_mirrors and pods.is_mirror(info.pod)):
                whole -= amount
            elif not pods.is_long_terminating(info.pod, now):
                used += amount
        if whole <= 0:
            return None
        shares.append(used / whole)
    return max(shares)
