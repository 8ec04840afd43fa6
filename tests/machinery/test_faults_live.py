"""Faults of calls and the shifted clock, on a real API server and etcd."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime.clock import FakeClock, SystemClock
from nominee.machinery.runtime.faults.call_faults import FAULTS
from tests.machinery.api_server import config_map, running
from tests.nominee.test_cli import nominee
from tests.support.cluster import Cluster
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

JUMP_SECONDS = 3600


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    """Remove the faults of this process, and give the registry its clock back."""
    before = FAULTS.clock
    yield
    FAULTS.clock = before
    FAULTS.clear()


class Changes:
    """The handler calls of an informer, as texts."""

    def __init__(self, informer: Informer[core.ConfigMap]) -> None:
        self.seen: list[str] = []
        informer.add_handler(
            on_add=lambda new: self.seen.append(f"add {_text(new)}"),
            on_update=lambda _, new: self.seen.append(f"update {_text(new)}"),
            on_delete=lambda last, stale: self.seen.append(f"delete {last.metadata.name} {stale}"),
        )


def _text(found: core.ConfigMap) -> str:
    return f"{found.metadata.name}={found.data.get('x', '')}"


async def put(client: Client, name: str, *values: str) -> None:
    """Create a ConfigMap with the first value, and update it to each next one."""
    obj = await client.create(config_map(name, x=values[0]))
    for value in values[1:]:
        obj.data["x"] = value
        obj = await client.update(obj)


@asynccontextmanager
async def informed(client: Client) -> AsyncIterator[Changes]:
    """Run a synced informer of the ConfigMaps in `default`."""
    informer = Informer(client, kinds.CONFIG_MAP, namespace="default")
    changes = Changes(informer)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.wait_synced()
        yield changes
        tasks.cancel_scope.cancel()


async def code_of(client: Client, name: str) -> int:
    """Return the code with which a read of a ConfigMap fails, or 200."""
    try:
        await client.get(kinds.CONFIG_MAP, name, "default")
    except StatusError as error:
        return error.code
    return 200


async def check_unary_calls(client: Client) -> None:
    await put(client, "a", "1")
    FAULTS.put("cut", "apiserver", "Get", "ConfigMap")
    assert await code_of(client, "a") == 503
    await client.get(kinds.NAMESPACE, "default")
    FAULTS.clear()
    assert await code_of(client, "a") == 200

    clock = FAULTS.clock = FakeClock()
    FAULTS.put("drop-response", "apiserver", "Create")
    codes: list[int] = []

    async def create() -> None:
        with pytest.raises(StatusError) as caught:
            await client.create(config_map("b"))
        codes.append(caught.value.code)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(create)
        await clock.wait_for_sleepers()
        assert await code_of(client, "b") == 200, "the write is done"
        await clock.advance(30)
    assert codes == [504]
    FAULTS.clear()


async def test_what_a_client_and_its_informer_see(cluster: Cluster) -> None:
    async with running(cluster) as client:
        await check_unary_calls(client)
        async with cluster.client(batches=True) as batching:
            for name in "ab":
                await client.delete(kinds.CONFIG_MAP, name, "default")
            await check_unary_calls(batching)
        async with informed(client) as changes:
            changes.seen.clear()
            FAULTS.put("hold", "apiserver", "*", "ConfigMap")
            await put(client, "held", "1", "2")
            await eventually(lambda: FAULTS.states()[0].waiting == 1)
            assert changes.seen == []
            FAULTS.clear()
            await expect(changes, "add held=1", "update held=2")

            FAULTS.put("merge", "apiserver", "*", "ConfigMap")
            await put(client, "merged", "1", "2", "3")
            await client.delete(kinds.CONFIG_MAP, "held", "default")
            await put(client, "held", "again")
            stream = next(iter(FAULTS._streams))
            await eventually(lambda: stream.withheld == 5)
            assert changes.seen == []
            FAULTS.clear()
            await expect(changes, "add merged=3", "delete held True", "add held=again")

            FAULTS.put("hold", "apiserver", "*", "ConfigMap")
            await put(client, "listed", "1", "2")
            await client.delete(kinds.CONFIG_MAP, "held", "default")
            await eventually(lambda: FAULTS.states()[0].waiting == 1)
            FAULTS.put("1*relist", "apiserver", "*", "ConfigMap")
            await expect(changes, "delete held True", "add listed=2")

            FAULTS.put("cut", "apiserver", "Watch")
            await put(client, "unseen", "1")
            await eventually(lambda: FAULTS.states()[0].fired > 0)
            assert changes.seen == []
            FAULTS.clear()
            await expect(changes, "add unseen=1")


async def expect(changes: Changes, *wanted: str) -> None:
    """Wait until the handlers have seen exactly these changes, and forget them."""
    await eventually(lambda: changes.seen[-1:] == list(wanted[-1:]), explain=lambda: changes.seen)
    assert changes.seen == list(wanted)
    changes.seen.clear()


async def test_an_api_server_whose_etcd_or_clock_fails(cluster: Cluster) -> None:
    async with running(cluster) as client:
        await check_the_command(cluster, client)
        await check_storage_failpoints(cluster, client)
        await check_the_clock(cluster, client)


async def cached_names(client: Client) -> list[str]:
    """Return the names of the ConfigMaps in the API server's watch cache."""
    found = await client.list(kinds.CONFIG_MAP, "default", resource_version="0")
    return [item.metadata.name for item in found.items]


async def check_the_command(cluster: Cluster, client: Client) -> None:
    def fault(*words: str, status: int = 0) -> str:
        answer = nominee("fault", "apiserver", *words, directory=cluster.directory)
        assert answer.returncode == status, answer.stderr
        return answer.stdout if status == 0 else answer.stderr

    assert fault("hold", "--to", "etcd", "--method", "Watch") == "apiserver: to etcd method Watch: hold\n"
    await put(client, "a", "1")
    assert await cached_names(client) == [], "the watch cache must be behind etcd"
    held = {"to": "etcd", "method": "Watch", "kind": "*", "action": "hold", "fired": 1, "waiting": 1}
    await eventually(
        lambda: json.loads(cluster.ask("apiserver", "/faults").text)["rules"], lambda rows: rows == [held]
    )
    lines = fault().splitlines()
    assert lines[1].split() == ["apiserver", "etcd", "Watch", "*", "hold", "1", "1"]
    assert lines[2] == "apiserver calls etcd: Compaction, LeaseGrant, Range, Txn, Watch"
    cluster.ask("apiserver", "/faults", method="DELETE")
    await eventually(lambda: cached_names(client), lambda names: names == ["a"])
    assert "no method Tnx of etcd; there are Txn" in fault("cut", "--method", "Tnx", "--to=etcd", status=1)
    for bad in ('{"to": "etcd"}', '{"action": 1}', '{"action": "cut", "form": "x"}', "[]", "x"):
        assert cluster.ask("apiserver", "/faults", method="PUT", body=bad).status == 400


async def check_storage_failpoints(cluster: Cluster, client: Client) -> None:
    for point, code in (("before", 404), ("after", 200)):
        cluster.failpoint("apiserver", f"apiserver.storage.write.{point}", 'error("disk")')
        with pytest.raises(StatusError, match="etcd: disk") as caught:
            await client.create(config_map(point))
        cluster.failpoint("apiserver", f"apiserver.storage.write.{point}", "off")
        assert caught.value.code == 503
        assert await code_of(client, point) == code
    cluster.failpoint("apiserver", "apiserver.storage.watch", "pause")
    await put(client, "late", "1")
    assert "late" not in await cached_names(client)
    cluster.failpoint("apiserver", "apiserver.storage.watch", "off")
    await eventually(lambda: cached_names(client), lambda names: "late" in names)


async def check_the_clock(cluster: Cluster, client: Client) -> None:
    for offset in (JUMP_SECONDS, -JUMP_SECONDS, 0):
        body = json.dumps({"offsetSeconds": offset})
        assert cluster.ask("apiserver", "/clock", method="PUT", body=body).status == 200
        made = await client.create(config_map(f"at{offset}"))
        assert abs(made.metadata.creationTimestamp.seconds - SystemClock().now() - offset) < PATIENCE_SECONDS
    shown = nominee("clock", "apiserver", "-1h", directory=cluster.directory).stdout
    assert shown.endswith(" (-3600 s)\n")
    # A watch with a time limit is not affected.
    since = (await client.list(kinds.CONFIG_MAP)).resource_version
    async for _ in client.watch(kinds.CONFIG_MAP, resource_version=since, timeout_seconds=1):
        pass
    for bad in ('{"offsetSeconds": "1"}', '{"offsetSeconds": NaN}', '{"seconds": 1}', "[]", "x"):
        assert cluster.ask("apiserver", "/clock", method="PUT", body=bad).status == 400
