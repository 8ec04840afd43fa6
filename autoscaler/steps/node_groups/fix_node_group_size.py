"""Step: decrease targets that have been larger than the number of nodes for too long. Pure."""

from __future__ import annotations

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.orders import DecreaseTargetSize, LoopError, Orders
from nominee.autoscaler.state import AutoscalerState


def fix_node_group_size(state: AutoscalerState, context: LoopContext) -> Orders[bool]:
    """Decrease these targets to the number of nodes; report whether there were any, which ends the loop.

    Raises:
        LoopError: the provider has refused.
    """
    is_fixed = False
    for group in list(state.view.groups.values()):
        size = state.registry.incorrect_sizes.get(group.id)
        if size is None:
            continue
        late_at = size.first_observed + state.options.max_node_provision_time
        if not late_at < context.result.at.monotonic:
            continue
        delta = size.current - size.expected
        if delta < 0:
            failure = yield from DecreaseTargetSize(group.id, delta)
            if failure is not None:
                raise LoopError(failure)
            context.result.target_decreased[group.id] = -delta
            is_fixed = True
    return is_fixed
