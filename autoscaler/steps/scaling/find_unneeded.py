"""Step: find unneeded nodes. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.planning.scale_down.planner import scale_down_candidates
from nominee.autoscaler.planning.scale_down.scale_down_input import ScaleDownInput
from nominee.autoscaler.state import AutoscalerState


@dataclass(frozen=True, slots=True)
class UnneededNodesResult:
    """Result of this step, for scale-down."""

    inputs: ScaleDownInput
    has_candidates: bool


def find_unneeded(state: AutoscalerState, context: LoopContext) -> UnneededNodesResult:
    """Update the unneeded nodes. Nodes of groups whose scale-down is delayed are no candidates."""
    view, at = state.view, context.result.at
    candidates = [
        node
        for node in scale_down_candidates(view, context.nodes)
        if not state.cooldowns.delays(view.group_of_node[node.metadata.name], at.monotonic)
    ]
    inputs = ScaleDownInput(
        snapshot=context.snapshot,
        observation=context.observation,
        view=view,
        deletions=context.deletions,
        nodes=context.nodes,
        binding=context.binding,
        at=at,
    )
    with context.result.time("findUnneeded", state.clock):
        state.planner.update_cluster_state(inputs, candidates)
    return UnneededNodesResult(inputs, bool(candidates))
