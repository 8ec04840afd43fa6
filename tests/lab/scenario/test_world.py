"""The copies of objects by which conditions are evaluated, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import anyio
import pytest

from nominee.lab.scenario.observing import world as module
from nominee.lab.scenario.observing.world import World
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, WatchEvent
from nominee.machinery.runtime.clock import SystemClock
from tests.machinery.api_server import config_map, running
from tests.support.cluster import Cluster

LAG_SECONDS = 0.3


def delay_watches(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let each message of a watch arrive so much later."""
    watch_batches = Client.watch_batches

    async def late(
        client: Client, *args: Any, **options: Any
    ) -> AsyncGenerator[Sequence[WatchEvent[Any]], None]:
        async for batch in watch_batches(client, *args, **options):
            await anyio.sleep(seconds)
            yield batch

    monkeypatch.setattr(Client, "watch_batches", late)


def data(world: World) -> dict[str, str]:
    found = cast("list[core.ConfigMap]", world.messages(kinds.CONFIG_MAP, "default"))
    return {each.metadata.name: each.data["a"] for each in found}


async def test_a_world_that_lags_catches_up_with_a_list(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    delay_watches(monkeypatch, LAG_SECONDS)
    async with running(cluster) as client, anyio.create_task_group() as tasks:
        world = World(client, SystemClock(), [kinds.CONFIG_MAP])
        await world.open(tasks)
        for name in ("changed", "deleted", "again"):
            await client.create(config_map(name, a="1"))
        await world.catch_up([kinds.CONFIG_MAP])
        assert data(world) == {"changed": "1", "deleted": "1", "again": "1"}

        await client.create(config_map("created", a="1"))
        await world.catch_up([kinds.CONFIG_MAP])
        assert data(world)["created"] == "1"

        changed = await client.get(kinds.CONFIG_MAP, "changed", "default")
        changed.data["a"] = "2"
        await client.update(changed)
        await world.catch_up([kinds.CONFIG_MAP])
        assert data(world)["changed"] == "2"

        await client.delete(kinds.CONFIG_MAP, "again", "default")
        await client.create(config_map("again", a="2"))
        await world.catch_up([kinds.CONFIG_MAP])
        assert data(world)["again"] == "2"

        await client.delete(kinds.CONFIG_MAP, "deleted", "default")
        await world.catch_up([kinds.CONFIG_MAP])
        assert data(world) == {"changed": "2", "again": "2", "created": "1"}
        tasks.cancel_scope.cancel()


async def test_a_watch_that_shows_nothing_is_not_waited_for_for_ever(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    delay_watches(monkeypatch, 3600)
    monkeypatch.setattr(module, "CATCH_UP_SECONDS", LAG_SECONDS)
    async with running(cluster) as client, anyio.create_task_group() as tasks:
        world = World(client, SystemClock(), [kinds.CONFIG_MAP])
        await world.open(tasks)
        await client.create(config_map("unseen", a="1"))
        await world.catch_up([kinds.CONFIG_MAP])
        assert data(world) == {}
        tasks.cancel_scope.cancel()
