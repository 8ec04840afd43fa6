"""Corrections of the provider's state before anything is planned: machines and targets that came to nothing.

Source: cluster-autoscaler 1.36, static autoscaler and clusterstate.
"""

from __future__ import annotations

from autoscaler.loop_context import LoopContext
from autoscaler.options import Options
from autoscaler.planning.cluster_state import ClusterState
from autoscaler.planning.observation import NodeGroup
from autoscaler.ports import Cloud, CloudError


class Repairs:
    """Each step changes the context's view with the provider's targets."""

    def __init__(self, options: Options, state: ClusterState, cloud: Cloud) -> None:
        self._options, self._state, self._cloud = options, state, cloud

    async def remove_unregistered(self, context: LoopContext) -> None:
        """Give back machines that did not become nodes in time, down to the group's minimum."""
        now, limit = context.result.at, self._options.max_node_provision_time
        for group in list(context.view.groups.values()):
            late = [i.id for i in group.instances if self._state.unregistered.get(i.id, now) + limit < now]
            late = late[: max(group.target - group.min, 0)]
            if late:
                await self._give_back(context, group, late)

    async def _give_back(self, context: LoopContext, group: NodeGroup, names: list[str]) -> None:
        events = context.result.events
        try:
            await self._cloud.delete_nodes(group.id, names)
        except CloudError as error:
            for name in names:
                text = f"Failed to remove node {name}: {error}"
                events.status("Warning", "DeleteUnregisteredFailed", text)
            return
        for name in names:
            events.status("Normal", "DeleteUnregistered", f"Removed unregistered node {name}")
        target = context.view.groups[group.id].target - len(names)
        context.view = context.view.with_target(group.id, target)

    async def remove_failed_instances(self, context: LoopContext) -> None:
        """Give back machines that the provider could not create."""
        for group in list(context.view.groups.values()):
            failed = [instance.id for instance in group.instances if instance.failed]
            if not failed:
                continue
            try:
                await self._cloud.delete_nodes(group.id, failed)
            except CloudError:
                continue  # the next loop tries again
            context.view = context.view.with_target(group.id, group.target - len(failed))
            self._state.recalculate(context.view)

    async def revert_timed_out(self, context: LoopContext) -> None:
        """Take back scale-ups that were not fulfilled in time."""
        for group, count in self._state.take_timed_out():
            try:
                await self._cloud.decrease_target(group, -count)
            except CloudError as error:
                text = f"Failed to decrease target size for group {group} after scale-up timeout: {error}"
                context.result.events.status("Warning", "FailedToRevertScaleUp", text)
                continue
            context.result.target_decreased[group] = count
            target = context.view.groups[group].target - count
            context.view = context.view.with_target(group, target)
            self._state.recalculate(context.view)

    async def fix_sizes(self, context: LoopContext) -> bool:
        """Lower targets that no nodes or machines account for; return whether there were any."""
        fixed = False
        for group in list(context.view.groups.values()):
            wrong = self._state.incorrect.get(group.id)
            if wrong is None or not wrong.since + self._options.max_node_provision_time < context.result.at:
                continue
            delta = wrong.current - wrong.expected
            if delta < 0:
                await self._cloud.decrease_target(group.id, delta)
                context.result.target_decreased[group.id] = -delta
                fixed = True
        return fixed
