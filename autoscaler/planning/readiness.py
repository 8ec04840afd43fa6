"""Which nodes are ready to be counted on. Pure.

Source: cluster-autoscaler 1.36, custom resources processor, startup taints and actionable cluster processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from autoscaler.planning import marks
from machinery.api.pb import core

NO_NODES = "Cluster has no nodes."
NO_READY_NODES = "Cluster has no ready nodes."


def unstarted_as_unready(
    nodes: Iterable[core.Node], lacks_devices: Callable[[core.Node], bool]
) -> tuple[core.Node, ...]:
    """Replace each ready node that has a startup taint, or lacks devices, by a copy that is not ready.

    Such a node is still upcoming: taken for ready it would have no place for the pods that it was ordered
    for, and another node would be ordered. A cordoned node stays as it is.
    """
    return tuple(
        marks.unready(node)
        if marks.is_ready_and_schedulable(node) and (marks.has_startup_taint(node) or lacks_devices(node))
        else node
        for node in nodes
    )


def empty_cluster(nodes: Sequence[core.Node]) -> str:
    """Return why `--scale-up-from-zero=false` forbids to act on this cluster, or ""."""
    if not nodes:
        return NO_NODES
    return "" if any(marks.is_ready_and_schedulable(node) for node in nodes) else NO_READY_NODES
