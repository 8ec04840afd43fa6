"""Run the extension points that do I/O: PreBind, Bind and PostBind.

Source: kube-scheduler 1.36, framework runtime.
"""

from __future__ import annotations

from collections.abc import Awaitable

import anyio

from nominee.scheduler.framework.api.status import check_answer
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, PreBindPlugin, Status
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.runtime.instrumentation import FAILED
from nominee.scheduler.framework.runtime.plugin_status import failed_status
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.shell.calls.perform import Performer


class BindingPlugins:
    """Runs plugins and performs the I/O that they return."""

    def __init__(self, performer: Performer) -> None:
        self._performer = performer

    async def pre_bind(
        self, framework: Framework, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        """Run PreBind in order, neighbours that allow it concurrently; return the first failure by order."""
        running = self._pre_bind(framework, state, pod, node_name)
        return await _observed(framework, "pre_bind", state, running)

    async def bind(
        self, framework: Framework, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        """Return the status of the first Bind plugin that does not skip; Skip when all do."""
        return await _observed(framework, "bind", state, self._bind(framework, state, pod, node_name))

    async def post_bind(self, framework: Framework, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Run PostBind in order."""
        await _observed(framework, "post_bind", state, self._post_bind(framework, state, pod, node_name))

    async def after_unreserve(
        self, framework: Framework, state: CycleState, pod: PodInfo, node_name: str
    ) -> None:
        """Take back the writes of PreBind plugins, in reverse order."""
        for plugin in reversed(framework.reserve_plugins):
            try:
                await self._performer.run(plugin.after_unreserve(state, pod, node_name))
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                failure = failed_status("Unreserve", plugin.name, Status.as_error(error))
                framework.environment.report(pod, failure)

    async def _pre_bind(
        self, framework: Framework, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        for batch in _batches(framework, state):
            status = await self._pre_bind_batch(framework, batch, state, pod, node_name)
            if status is not None:
                return status
        return None

    async def _pre_bind_batch(
        self,
        framework: Framework,
        batch: list[PreBindPlugin],
        state: CycleState,
        pod: PodInfo,
        node_name: str,
    ) -> Status | None:
        statuses: list[Status | None] = [None] * len(batch)
        hooks = state.hooks.pre_bind

        async def run(index: int) -> None:
            plugin = batch[index]
            began = framework.monotonic() if hooks else 0.0
            try:
                status = await self._performer.run(plugin.pre_bind(state, pod, node_name))
                if status is not None:
                    check_answer(status, "pre_bind")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            for hook in hooks:
                hook(state, plugin.name, status, framework.monotonic() - began)
            if status is not None and not status.is_success:
                if status.is_rejected:
                    statuses[index] = status.with_plugin(plugin.name)
                else:
                    statuses[index] = failed_status("PreBind", plugin.name, status)

        if len(batch) == 1:
            await run(0)
        else:
            async with anyio.create_task_group() as group:
                for index in range(len(batch)):
                    group.start_soon(run, index)
        return next((status for status in statuses if status is not None), None)

    async def _bind(
        self, framework: Framework, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        hooks = state.hooks.bind
        for plugin in framework.bind_plugins:
            began = framework.monotonic() if hooks else 0.0
            try:
                status = await self._performer.run(plugin.bind(state, pod, node_name))
                if status is not None:
                    check_answer(status, "bind")
            except Exception as error:  # noqa: BLE001  # plugins come from outside
                status = Status.as_error(error)
            for hook in hooks:
                hook(state, plugin.name, status, framework.monotonic() - began)
            if status is None or status.is_success:
                return None
            if status.is_skip:
                continue
            if status.is_rejected:
                rejection: Status = status.with_plugin(plugin.name)
                return rejection
            return failed_status("Bind", plugin.name, status)
        return Status(Code.Skip)

    async def _post_bind(self, framework: Framework, state: CycleState, pod: PodInfo, node_name: str) -> None:
        hooks = state.hooks.post_bind
        for plugin in framework.post_bind_plugins:
            began = framework.monotonic() if hooks else 0.0
            await self._performer.run(plugin.post_bind(state, pod, node_name))
            for hook in hooks:
                hook(state, plugin.name, framework.monotonic() - began)


async def _observed(
    framework: Framework, point: str, state: CycleState, running: Awaitable[Status | None]
) -> Status | None:
    """Call the point's hooks after the run; one that raises counts as an Error."""
    hooks = framework.point_hooks.get(point)
    if not hooks:
        return await running
    status: Status | None = FAILED
    began = framework.monotonic()
    try:
        status = await running
        return status
    finally:
        seconds = framework.monotonic() - began
        for hook in hooks:
            hook(state, status, seconds)


def _batches(framework: Framework, state: CycleState) -> list[list[PreBindPlugin]]:
    """Return the plugins that have work, those that run beside each other together."""
    batches: list[list[PreBindPlugin]] = []
    joins = False  # whether the next plugin may join the last batch
    for plugin in framework.pre_bind_plugins:
        if plugin.name in state.skip_pre_bind_plugins:
            continue
        is_parallel = plugin.name in state.parallel_pre_bind_plugins
        if is_parallel and joins:
            batches[-1].append(plugin)
        else:
            batches.append([plugin])
        joins = is_parallel
    return batches
