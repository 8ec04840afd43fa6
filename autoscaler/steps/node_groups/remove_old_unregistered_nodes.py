"""Step: delete instances that did not register as nodes in time. Pure."""

from __future__ import annotations

from nominee.autoscaler.loop_context import LoopContext
from nominee.autoscaler.orders import DeleteNodes, Orders
from nominee.autoscaler.state import AutoscalerState


def remove_old_unregistered_nodes(state: AutoscalerState, context: LoopContext) -> Orders[None]:
    """Delete these instances, but none below the minimum size of their group."""
    now, limit = context.result.at.monotonic, state.options.max_node_provision_time
    events = context.result.events
    for group in list(state.view.groups.values()):
        since = state.registry.unregistered
        late = [instance.id for instance in group.instances if since.get(instance.id, now) + limit < now]
        late = late[: max(group.target - group.min, 0)]
        if not late:
            continue
        failure = yield from DeleteNodes(group.id, tuple(late))
        if failure is not None:
            for name in late:
                text = f"Failed to remove node {name}: {failure}"
                events.status("Warning", "DeleteUnregisteredFailed", text)
            continue
        for name in late:
            events.status("Normal", "DeleteUnregistered", f"Removed unregistered node {name}")
        state.view = state.view.with_target(group.id, state.view.groups[group.id].target - len(late))
