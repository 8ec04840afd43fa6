"""Step: increase node groups that are below their minimum size. Pure."""

from __future__ import annotations

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.orders import Orders
from nominee.autoscaler.planning.scale_up.plan import ScaleUpResult, plan_scale_up_to_min_size
from nominee.autoscaler.state import AutoscalerState
from nominee.autoscaler.steps.scaling.scale_up import execute_scale_up, scale_up_input


def scale_up_to_node_group_min_size(state: AutoscalerState, context: LoopContext) -> Orders[None]:
    """Increase these groups, unless there was a scale-up in this loop."""
    result = context.result
    if result.scale_up.result is ScaleUpResult.SUCCESSFUL:
        return
    result.activities.add("scaleUp")
    plan = plan_scale_up_to_min_size(scale_up_input(state, context))
    if plan.scale_ups:
        yield from execute_scale_up(state, context, plan)
        result.scale_up = plan
