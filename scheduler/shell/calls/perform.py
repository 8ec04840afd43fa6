"""Perform the I/O that plugins ask for (`nominee.scheduler.framework.api.io_steps`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

import anyio

from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.framework.api import io_steps
from nominee.scheduler.framework.api.io_steps import ApiCall, IoStep, IoSteps
from nominee.scheduler.shell.calls import failpoints as steps

R = TypeVar("R")
_log = logs.get()


class Performer:
    """Performs steps with one client. Plugins from outside may return awaitables instead of steps."""

    def __init__(self, client: Client, clock: Clock, clear_nomination: Callable[[core.Pod], None]) -> None:
        self._client = client
        self._clock = clock
        self._clear_nomination = clear_nomination

    async def run(self, work: object) -> Any:
        """Do steps or await an awaitable, and return the result; None is nothing to do."""
        if work is None:
            return None
        if isinstance(work, Generator):
            return await self.perform(work)
        if isinstance(work, Awaitable):
            return await work
        raise TypeError(f"expected a generator of steps or an awaitable, got {type(work).__name__}")

    async def perform(self, work: IoSteps[R]) -> R:
        """Do the generator's steps until it returns."""
        try:
            step = next(work)
            while True:
                try:
                    result = await self._do(step)
                except BaseException as error:  # noqa: BLE001  # also a cancellation: the generator cleans up
                    step = work.throw(error)
                else:
                    step = work.send(result)
        except StopIteration as end:
            returned: R = end.value
            return returned

    async def _do(self, step: IoStep) -> Any:
        match step:
            case io_steps.ClearNomination(pod):
                return self._clear_nomination(pod)
            case io_steps.Sleep(seconds):
                return await self._clock.sleep(seconds)
            case io_steps.Failpoint(name, labels):
                return await steps.POINTS[name].hit(**labels)
            case io_steps.Warn(text, labels):
                return _log.warning(text, **labels)
            case io_steps.Concurrently(works, limit):
                return await self._concurrently(works, limit)
            case io_steps.Run(work):
                return await self.run(work)
            case ApiCall():
                return await retry_unavailable(
                    self._call(step), clock=self._clock, attempts_max=step.attempts
                )

    def _call(self, step: ApiCall) -> Callable[[], Awaitable[Any]]:
        client = self._client
        match step:
            case io_steps.Get(kind, name, namespace):
                return lambda: client.get(kind, name, namespace)
            case io_steps.Create(obj):
                return lambda: client.create(obj)
            case io_steps.Update(obj, subresource, shielded):
                if shielded:
                    return lambda: _shielded(client.update(obj, subresource=subresource))
                return lambda: client.update(obj, subresource=subresource)
            case io_steps.Patch(kind, name, namespace, patch, subresource):
                return lambda: client.patch(kind, name, namespace, patch, subresource=subresource)
            case io_steps.Delete(kind, name, namespace):
                return lambda: client.delete(kind, name, namespace)
            case io_steps.BindPod(namespace, name, node_name, uid):
                return lambda: client.bind(namespace, name, node_name, uid=uid)
        raise TypeError(f"{type(step).__name__} is no call to the API server")

    async def _concurrently(self, works: Any, limit: int) -> None:
        limiter = anyio.CapacityLimiter(limit)

        async def one(work: IoSteps[None]) -> None:
            async with limiter:
                await self.perform(work)

        async with anyio.create_task_group() as group:
            for work in works:
                group.start_soon(one, work)


async def _shielded(call: Awaitable[R]) -> R:
    """Wait for the answer, or for the client's own limit, also when the caller is cancelled."""
    with anyio.CancelScope(shield=True):
        answer = await call
    return answer
