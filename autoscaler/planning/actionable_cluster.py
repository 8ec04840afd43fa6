"""Whether the autoscaler may act on a cluster without nodes.

Source: cluster-autoscaler 1.36, actionable cluster processor.
"""

from __future__ import annotations

from collections.abc import Sequence

from autoscaler.planning.readiness import is_ready_and_schedulable
from machinery.api.pb import core

NO_NODES = "Cluster has no nodes."
NO_READY_NODES = "Cluster has no ready nodes."


def empty_cluster(nodes: Sequence[core.Node]) -> str:
    """Return why `--scale-up-from-zero=false` forbids to act on this cluster, or ""."""
    if not nodes:
        return NO_NODES
    return "" if any(map(is_ready_and_schedulable, nodes)) else NO_READY_NODES
