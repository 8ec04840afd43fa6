"""Step: end the loop in an unhealthy cluster. Pure."""

from __future__ import annotations

from nominee.autoscaler.planning.objects.events import Events
from nominee.autoscaler.state import AutoscalerState


def is_healthy(state: AutoscalerState, events: Events) -> bool:
    """Report whether the cluster is healthy; if not, no node is unneeded any more."""
    if state.registry.is_cluster_healthy():
        return True
    state.planner.clean_up_unneeded_nodes()
    events.status("Warning", "ClusterUnhealthy", "Cluster is unhealthy")
    return False
