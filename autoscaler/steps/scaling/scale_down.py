"""Step: start the deletion of nodes that have been unneeded for long enough. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.autoscaler.actuation.start_deletion import start_deletion
from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.orders import ErrorType, Orders
from nominee.autoscaler.planning.scale_down.planner import NodesToDelete
from nominee.autoscaler.planning.scale_down.scale_down_input import NodeToBeRemoved
from nominee.autoscaler.result import ScaleDownResult
from nominee.autoscaler.state import AutoscalerState
from nominee.autoscaler.steps.scaling.find_unneeded import UnneededNodesResult


def scale_down(state: AutoscalerState, context: LoopContext, unneeded: UnneededNodesResult) -> Orders[None]:
    """Start deletions, unless scale-down is in cooldown."""
    result = context.result
    result.in_cooldown = context.is_scale_down_disabled or state.cooldowns.active(result.at.monotonic)
    if result.in_cooldown:
        result.scale_down = ScaleDownResult.IN_COOLDOWN
        return
    result.activities.add("scaleDown")
    if not unneeded.has_candidates:
        result.scale_down = ScaleDownResult.NO_CANDIDATES
        return
    with result.time("scaleDown", state.clock):
        result.scale_down = ScaleDownResult.NO_NODE_DELETED
        nodes = state.planner.nodes_to_delete(unneeded.inputs, state.deletions)
        if nodes:
            yield from _start(state, context, nodes)


def _start(state: AutoscalerState, context: LoopContext, nodes: NodesToDelete) -> Orders[None]:
    result, now = context.result, context.result.at.monotonic
    error = yield from start_deletion(state, nodes, context.snapshot, result.events)
    if error:
        state.cooldowns.deletion_failed(now)
        result.scale_down = ScaleDownResult.ERROR
        result.error, result.error_type = error, ErrorType.API_CALL
        return
    result.scale_down = ScaleDownResult.NODE_DELETE_STARTED
    result.empty, result.drained = _names(nodes.empty), _names(nodes.drain)
    state.cooldowns.deletion_started(now)


def _names(removals: Sequence[NodeToBeRemoved]) -> list[str]:
    return sorted(removal.node.metadata.name for removal in removals)
