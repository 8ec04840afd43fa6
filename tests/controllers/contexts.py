"""The dependencies of a controller under test, over a fake API server and a simulated clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio

from nominee.controllers.shell.controller import Context, InformerSet, Recorders
from nominee.machinery.client.api_client import Client
from nominee.machinery.features import gates as versions
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import FakeClock
from tests.support.fake_api import FakeApi


@asynccontextmanager
async def synced(context: Context, *runs: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run the informers of a context, and these once they are synced; all are cancelled at the end."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        await context.informers.wait_synced()
        for run in runs:
            tasks.start_soon(run)
        yield
        tasks.cancel_scope.cancel()


def context_of(api: FakeApi, clock: FakeClock, *, root_ca: str = "") -> Context:
    """Return the context of a controller; its informers do not run yet."""
    client = cast("Client", api)
    return Context(
        client=client,
        informers=InformerSet(client, clock),
        clock=clock,
        recorders=Recorders(client, clock),
        gates=versions.Gates("controllers", versions.DEFAULT),
        log=logs.get(),
        root_ca=root_ca,
    )
