"""Step: delete instances that the provider could not create. Pure."""

from __future__ import annotations

from nominee.autoscaler.orders import DeleteNodes, Orders
from nominee.autoscaler.state import AutoscalerState


def delete_created_nodes_with_errors(state: AutoscalerState) -> Orders[None]:
    """Delete the failed instances of each group; after a failure the next loop tries again."""
    for group in list(state.view.groups.values()):
        failed = tuple(instance.id for instance in group.instances if instance.creation_failed)
        if not failed:
            continue
        failure = yield from DeleteNodes(group.id, failed)
        if failure is not None:
            continue
        state.view = state.view.with_target(group.id, group.target - len(failed))
        state.registry.recalculate(state.view)
