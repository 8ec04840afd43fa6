"""Step: end the loop in a cluster without nodes. Pure.

Source: cluster-autoscaler 1.36, actionable cluster processor.
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.autoscaler.planning.objects.observation import Observation
from nominee.autoscaler.planning.objects.readiness import is_ready_and_schedulable
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.pb import core

NO_NODES = "Cluster has no nodes."
NO_READY_NODES = "Cluster has no ready nodes."
NODES_NOT_READY_SECONDS = 600.0
"""For so long after the start of the process no event reports that no node is ready."""


def act_on_empty_cluster(state: AutoscalerState, observation: Observation, result: LoopResult) -> bool:
    """Report whether the loop ends, because the cluster is empty and must not be scaled up from zero."""
    if state.options.scale_up_from_zero:
        return False
    result.empty_cluster = _empty_cluster(observation.nodes)
    if not result.empty_cluster:
        return False
    state.planner.clean_up_unneeded_nodes()
    if result.empty_cluster == NO_NODES or state.started_at + NODES_NOT_READY_SECONDS < result.at.monotonic:
        result.events.status("Warning", "ClusterUnhealthy", result.empty_cluster)
    return True


def _empty_cluster(nodes: Sequence[core.Node]) -> str:
    """Return in which sense the cluster is empty, or ""."""
    if not nodes:
        return NO_NODES
    return "" if any(map(is_ready_and_schedulable, nodes)) else NO_READY_NODES
