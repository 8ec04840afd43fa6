"""The client against a real API server: errors, cancellation, deadlines, and a server that dies or moves."""

from __future__ import annotations

import asyncio
import functools
from contextlib import aclosing

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client import api_client as client_module
from nominee.machinery.client.api_client import retry_unavailable
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.runtime.clock import FakeClock
from tests.machinery.api_server import config_map, running
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

BOTH = pytest.mark.parametrize("batches", [False, True], ids=["unary", "batched"])
"""The client makes each call by itself, or by a stream."""


@BOTH
async def test_requests_and_statuses(cluster: Cluster, batches: bool) -> None:
    async with running(cluster, batches=batches) as client:
        made = await client.create(config_map("a", x="1"))
        assert made.metadata.resourceVersion
        assert (await client.get(kinds.CONFIG_MAP, "a", "default")).data == {"x": "1"}
        with pytest.raises(StatusError, match='configmaps "a" already exists') as caught:
            await client.create(config_map("a"))
        assert errors.is_already_exists(caught.value)
        with pytest.raises(StatusError, match='configmaps "b" not found'):
            await client.get(kinds.CONFIG_MAP, "b", "default")

        changed = core.ConfigMap()
        changed.CopyFrom(made)
        changed.data["x"] = "2"
        changed = await client.update(changed)
        with pytest.raises(StatusError) as caught:
            await client.update(made)
        assert errors.is_conflict(caught.value)
        await client.patch(
            kinds.CONFIG_MAP, "a", "default", {"metadata": {"labels": {"l": "v"}}}, patch_type=PatchType.MERGE
        )

        listed = await client.list(kinds.CONFIG_MAP, "default", label_selector="l=v")
        assert [item.metadata.name for item in listed.items] == ["a"]
        assert listed.continue_token == ""
        assert await client.delete(kinds.CONFIG_MAP, "a", "default") is True
        with pytest.raises(StatusError) as caught:
            await client.delete(kinds.CONFIG_MAP, "a", "default")
        assert errors.is_not_found(caught.value)

        info = await client.server_info()
        assert info.version == "1.37"
        assert info.feature_gates["NominatedNodeNameForExpectation"] is True
        assert info.revision >= int(listed.resource_version)


async def test_a_watch_from_a_revision(cluster: Cluster) -> None:
    async with running(cluster) as client:
        before = await client.create(config_map("a"))
        await client.create(config_map("b"))
        await client.delete(kinds.CONFIG_MAP, "a", "default")
        watch = client.watch(kinds.CONFIG_MAP, "default", resource_version=before.metadata.resourceVersion)
        seen = []
        async with aclosing(watch):
            async for event in watch:
                seen.append((event.type, event.object.metadata.name))
                assert event.revision == int(event.object.metadata.resourceVersion)
                if len(seen) == 2:
                    break
        assert seen == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_list_may_be_larger_than_4_mib(cluster: Cluster) -> None:
    async with running(cluster) as client:
        for index in range(10):
            await client.create(config_map(f"big-{index}", text="x" * 600_000))
        listed = await client.list(kinds.CONFIG_MAP, "default")
        assert sum(len(item.data.get("text", "")) for item in listed.items) == 6_000_000


@BOTH
async def test_cancellation_by_a_scope_keeps_its_scope(cluster: Cluster, batches: bool) -> None:
    """A call that grpc cancels must still end in the scope that was cancelled, not in one further out."""
    async with running(cluster, batches=batches) as client:
        await client.server_info()
        cluster.pause("apiserver")
        with anyio.move_on_after(0.05) as scope:
            await client.get(kinds.CONFIG_MAP, "a", "default")
        assert scope.cancelled_caught
        with anyio.move_on_after(0.05) as scope:
            async for _ in client.watch(kinds.CONFIG_MAP, resource_version="0"):
                pass
        assert scope.cancelled_caught
        task = asyncio.ensure_future(client.get(kinds.CONFIG_MAP, "a", "default"))
        await anyio.lowlevel.checkpoint()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cluster.resume("apiserver")
        with pytest.raises(StatusError) as caught:
            await client.get(kinds.CONFIG_MAP, "a", "default")
        assert errors.is_not_found(caught.value)


async def test_a_server_that_hangs_meets_the_deadline(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(cluster) as client:
        await client.server_info()
        cluster.pause("apiserver")
        monkeypatch.setattr(client_module, "UNARY_SECONDS_MAX", 0.2)
        with pytest.raises(StatusError) as caught:
            await client.server_info()
        assert errors.is_timeout(caught.value)
        cluster.resume("apiserver")


async def test_a_closed_client_ends_its_watches_and_refuses_calls(cluster: Cluster) -> None:
    async with running(cluster) as client:
        failures: list[StatusError] = []
        established = anyio.Event()

        async def watch() -> None:
            try:
                async for _ in client.watch_batches(kinds.CONFIG_MAP, resource_version="0"):
                    established.set()
            except StatusError as error:
                failures.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await established.wait()
            await client.close()
        with pytest.raises(StatusError) as caught:
            await client.get(kinds.CONFIG_MAP, "a", "default")
        assert [error.reason for error in [*failures, caught.value]] == ["ServiceUnavailable"] * 2


@BOTH
async def test_it_follows_a_killed_server_to_another_port(cluster: Cluster, batches: bool) -> None:
    async with running(cluster, batches=batches) as client:
        await client.create(config_map("a"))
        before = client.address
        cluster.kill("apiserver")
        with pytest.raises(StatusError) as caught:
            await client.get(kinds.CONFIG_MAP, "a", "default")
        assert caught.value.reason == "ServiceUnavailable", repr(caught.value)
        await cluster.start("apiserver")
        found = await retry_unavailable(lambda: client.get(kinds.CONFIG_MAP, "a", "default"))
        assert found.metadata.name == "a"
        assert client.address == cluster.run_file("apiserver").grpc != before


@pytest.mark.slow
@BOTH
async def test_it_may_be_used_by_many_while_the_server_moves(cluster: Cluster, batches: bool) -> None:
    async with running(cluster, batches=batches) as client:
        done: list[str] = []

        async def write(worker: int) -> None:
            for index in range(20):
                name = f"w{worker}-{index}"
                create = functools.partial(client.create, config_map(name))
                try:
                    await retry_unavailable(create, attempts_max=50)
                except StatusError as error:
                    # The first try was done, its answer lost.
                    if not errors.is_already_exists(error):
                        raise
                done.append(name)

        async with anyio.create_task_group() as group:
            for worker in range(8):
                group.start_soon(write, worker)
            await eventually(lambda: len(done) > 10)
            cluster.kill("apiserver")
            await cluster.start("apiserver")
        listed = await client.list(kinds.CONFIG_MAP, "default")
        assert {item.metadata.name for item in listed.items} >= set(done)
        assert len(done) == 160


async def test_retries_have_a_limit_and_wait_for_retry_after() -> None:
    clock = FakeClock()
    tries = 0

    async def fail() -> None:
        nonlocal tries
        tries += 1
        raise errors.service_unavailable("no")

    failures: list[StatusError] = []

    async def run() -> None:
        try:
            await retry_unavailable(fail, clock=clock, attempts_max=4, seconds_first=1.0, seconds_max=3.0)
        except StatusError as error:
            failures.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        for seconds, want in ((1.0, 1), (2.0, 2), (3.0, 3)):
            await clock.wait_for_sleepers()
            assert tries == want
            await clock.advance(seconds)
    assert (tries, len(failures)) == (4, 1)


async def test_what_cannot_succeed_is_not_retried() -> None:
    tries = 0

    async def fail() -> None:
        nonlocal tries
        tries += 1
        raise errors.bad_request("no")

    with pytest.raises(StatusError):
        await retry_unavailable(fail)
    assert tries == 1
