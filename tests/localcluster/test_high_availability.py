"""Clusters with several etcd members, API servers and autoscalers, of which one dies."""

from __future__ import annotations

import functools
from pathlib import Path

import anyio
import pytest

from nominee.commands.cluster.leader import leading_port
from nominee.localcluster.etcd.leader import leader
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_already_exists
from nominee.machinery.client.api_client import connect, retry_unavailable
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.serving_client import ServingPort, request
from tests.localcluster.test_cluster import Cluster, directory
from tests.machinery.api_server import config_map
from tests.support.etcd import skip_if_etcd_loses_writes
from tests.support.eventually import eventually

__all__ = ["directory"]  # the fixture
MEMBERS = ("etcd-0", "etcd-1", "etcd-2")
SERVERS = ("apiserver-0", "apiserver-1")


class Writer:
    """Creates ConfigMaps one after another, and keeps the names of those that were acknowledged."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.acknowledged: list[str] = []

    async def run(self) -> None:
        async with await connect(self._directory) as client:
            while True:
                made = config_map(f"c{len(self.acknowledged)}")
                try:
                    await retry_unavailable(functools.partial(client.create, made), attempts_max=100)
                except StatusError as error:
                    # An attempt before this one was applied; its answer was lost with the server.
                    if not is_already_exists(error):
                        raise
                self.acknowledged.append(made.metadata.name)

    async def goes_on(self) -> None:
        """Wait for ten more writes."""
        count = len(self.acknowledged) + 10
        await eventually(lambda: len(self.acknowledged) >= count)


@pytest.mark.slow
async def test_no_acknowledged_write_is_lost_with_a_member_or_an_api_server(directory: Path) -> None:
    skip_if_etcd_loses_writes()
    cluster = await anyio.to_thread.run_sync(
        lambda: Cluster(
            directory,
            *("--components", "etcd,apiserver", "--replicas", "etcd=3,apiserver=2", "--timeout", "120"),
            *("--emulated-version", "apiserver-0=1.36,apiserver-1=1.37"),
        )
    )

    async def run(*words: str) -> None:
        await anyio.to_thread.run_sync(lambda: cluster(*words))

    writer = Writer(directory)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        for member in MEMBERS:  # one of them leads
            await writer.goes_on()
            await run("stop", "--kill", member)
            await writer.goes_on()
            await run("start", member)
        for server in SERVERS:  # the writer's client goes from one to the other, and back
            await run("restart", "--kill", server)
            await writer.goes_on()
        tasks.cancel_scope.cancel()
    for server, version in zip(SERVERS, ("1.36", "1.37"), strict=True):
        async with await connect(directory, server) as client:
            assert (await client.server_info()).version == version
            listed = await client.list(kinds.CONFIG_MAP, "default")
            found = {item.metadata.name for item in listed.items}
            assert set(writer.acknowledged) <= found, server
    assert (directory / "kubeconfig").exists()
    assert (directory / "apiserver-1.kubeconfig").exists()
    answer = cluster("down")
    assert "is down" in answer
    assert "are of 3 etcd members, not of 1" in _refusal(directory)


@pytest.mark.slow
async def test_no_acknowledged_write_is_lost_when_the_leader_loses_the_network(directory: Path) -> None:
    skip_if_etcd_loses_writes()
    cluster = await anyio.to_thread.run_sync(
        lambda: Cluster(
            directory,
            *("--components", "etcd,apiserver", "--replicas", "etcd=3,apiserver=2", "--timeout", "120"),
            *("--arg", "etcd=--peer-relay"),
        )
    )

    async def leads() -> str:
        return await anyio.to_thread.run_sync(leader, directory)

    writer = Writer(directory)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        await writer.goes_on()
        former = await leads()
        await anyio.to_thread.run_sync(lambda: cluster("fault", "etcd-leader", "cut"))
        await writer.goes_on()
        assert await leads() not in ("", former)
        await anyio.to_thread.run_sync(lambda: cluster("fault", "etcd", "off"))
        # With another member down the former leader is needed for a majority.
        other = next(name for name in MEMBERS if name != former)
        await anyio.to_thread.run_sync(lambda: cluster("stop", "--kill", other))
        await writer.goes_on()
        tasks.cancel_scope.cancel()
    for server in SERVERS:
        async with await connect(directory, server) as client:
            listed = await client.list(kinds.CONFIG_MAP, "default")
            assert set(writer.acknowledged) <= {item.metadata.name for item in listed.items}, server


def _refusal(directory: Path) -> str:
    from tests.nominee.test_cli import nominee

    one = ("up", "--detach", "--components", "etcd", "--no-remember")
    return nominee(*one, directory=directory).stderr


@pytest.mark.slow
async def test_a_standby_autoscaler_takes_over(directory: Path) -> None:
    cluster = await anyio.to_thread.run_sync(
        lambda: Cluster(directory, "--replicas", "autoscaler=2", "--nodes", "1", "--timeout", "120")
    )

    def loops(name: str) -> bool:
        run_file = RunFile.read(directory, name)
        if run_file is None:
            return False
        return bool(request(ServingPort.of(run_file.http, directory), "/debug/loop").text.count('"at":"2'))

    names = ("autoscaler-0", "autoscaler-1")
    leader = await eventually(lambda: next((name for name in names if loops(name)), ""))
    standby = next(name for name in names if name != leader)
    assert not loops(standby)
    assert leading_port(directory, "autoscaler")[0] == leader
    await anyio.to_thread.run_sync(lambda: cluster("stop", "--kill", leader))
    await eventually(lambda: loops(standby))
