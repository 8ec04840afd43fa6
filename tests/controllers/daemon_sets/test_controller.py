"""The daemon set controller's shell with watches that are late."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import anyio

from nominee.controllers.daemon_sets.shell.daemon_sets import DaemonSetController
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind, M
from nominee.machinery.api.pb import apps
from nominee.machinery.client.api_client import ListResult, WatchEvent
from nominee.machinery.runtime.clock import FakeClock
from tests.controllers.builders import node
from tests.controllers.contexts import context_of
from tests.controllers.daemon_sets.builders import daemon_set
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS


class LateApi(FakeApi):
    """Shows no revision, and pods not before the controller creates its revision once more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shows_pods = anyio.Event()

    async def list(self, kind: Kind[M], namespace: str = "", **options: object) -> ListResult[M]:
        found = await super().list(kind, namespace, **options)
        return ListResult([], found.resource_version) if kind is kinds.CONTROLLER_REVISION else found

    async def watch_batches(
        self, kind: Kind[M], namespace: str = "", *, resource_version: str, **_: object
    ) -> AsyncGenerator[Sequence[WatchEvent[M]], None]:
        async for batch in super().watch_batches(kind, namespace, resource_version=resource_version):
            if kind is kinds.POD and batch:
                await self.shows_pods.wait()
            if kind is not kinds.CONTROLLER_REVISION or not batch:
                yield batch

    async def create(self, obj: M, **options: object) -> M:
        if isinstance(obj, apps.ControllerRevision) and self.all_of(kinds.POD):
            self.shows_pods.set()
            for _ in range(50):  # until the informer has them
                await anyio.lowlevel.checkpoint()
        return await super().create(obj, **options)


async def test_a_pod_that_the_watch_shows_during_a_reconciliation_is_not_created_again() -> None:
    api, clock = LateApi(), FakeClock()
    api.put(node())
    owner = api.put(daemon_set())
    context = context_of(cast("Any", api), clock)
    controller = DaemonSetController(context)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(context.informers.run)
            await context.informers.wait_synced()
            tasks.start_soon(controller.run)
            await api.until(lambda: len(api.all_of(kinds.POD)) == 1)
            while not api.shows_pods.is_set():
                api.put(owner)
                await clock.advance(1)
            for _ in range(20):
                await clock.advance(1)
            tasks.cancel_scope.cancel()
    assert [each.kind for each in api.requests if each.verb == "create"].count("Pod") == 1
