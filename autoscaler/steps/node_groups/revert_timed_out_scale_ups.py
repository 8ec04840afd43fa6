"""Step: decrease the targets of groups whose requested nodes did not register in time. Pure."""

from __future__ import annotations

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.orders import DecreaseTargetSize, Orders
from nominee.autoscaler.state import AutoscalerState


def revert_timed_out_scale_ups(state: AutoscalerState, context: LoopContext) -> Orders[None]:
    """Decrease each target by the number of nodes that timed out."""
    for group, count in state.registry.scale_ups.take_to_revert():
        failure = yield from DecreaseTargetSize(group, -count)
        if failure is not None:
            text = f"Failed to decrease target size for group {group} after scale-up timeout: {failure}"
            context.result.events.status("Warning", "FailedToRevertScaleUp", text)
            continue
        context.result.target_decreased[group] = count
        state.view = state.view.with_target(group, state.view.groups[group].target - count)
        state.registry.recalculate(state.view)
