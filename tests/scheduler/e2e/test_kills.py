"""Kills in the middle of much work lose nothing and overfill nothing."""

from __future__ import annotations

import anyio
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.client.api_client import Client, retry_unavailable
from nominee.machinery.resources.quantity import milli
from tests.scheduler.e2e.objects import node, pod, scheduled_condition
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

pytestmark = pytest.mark.slow

PODS = 120
NODES = 8
PODS_PER_NODE = PODS // NODES  # the nodes are just big enough


async def unbound(client: Client) -> int:
    found = await retry_unavailable(
        lambda: client.list(kinds.POD, "default", field_selector="spec.nodeName=")
    )
    return len(found.items)


async def assert_nothing_is_overfilled(client: Client) -> None:
    used: dict[str, int] = {}
    for each in (await client.list(kinds.POD, "default")).items:
        assert each.status.nominatedNodeName == ""
        condition = scheduled_condition(each)
        assert condition is not None
        assert condition.status == "True", f"{each.metadata.name}: {condition}"
        cpu = milli(each.spec.containers[0].resources.requests["cpu"])
        used[each.spec.nodeName] = used.get(each.spec.nodeName, 0) + cpu
    assert used == {f"n{number}": PODS_PER_NODE * 100 for number in range(NODES)}


async def fill(cluster: Cluster, client: Client) -> None:
    for number in range(NODES):
        await client.create(node(f"n{number}", cpu=f"{PODS_PER_NODE * 100}m"))
    async with anyio.create_task_group() as group:
        for number in range(PODS):
            group.start_soon(client.create, pod(f"p{number}"))


async def test_the_scheduler_is_killed_again_and_again(cluster: Cluster) -> None:
    cluster.arguments("apiserver", "--disable-admission-plugins=TaintNodesByCondition")
    # Each life binds some pods and dies with others between decision and binding.
    cluster.arguments("scheduler", "--failpoints=scheduler.bind.before=25*off->crash")
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        await fill(cluster, client)
        for _ in range(3):
            cluster.spawn("scheduler")
            assert await cluster.exited("scheduler") < 0
        cluster.arguments("scheduler")
        await cluster.start("scheduler")
        await eventually(lambda: unbound(client), lambda count: count == 0)
        await assert_nothing_is_overfilled(client)


async def test_the_api_server_is_killed_under_bindings(cluster: Cluster) -> None:
    cluster.arguments("apiserver", "--disable-admission-plugins=TaintNodesByCondition")
    cluster.arguments("scheduler", "--failpoints=scheduler.cycle.before=sleep(10)")
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await fill(cluster, client)
        for left in (PODS * 3 // 4, PODS // 2):
            await eventually(lambda: unbound(client), left.__gt__)
            cluster.kill("apiserver")
            await cluster.start("apiserver")
        await eventually(lambda: unbound(client), lambda count: count == 0)
        await assert_nothing_is_overfilled(client)
