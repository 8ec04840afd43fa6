"""A scheduler that dies in the middle of preemptions leaves a state from which the next one ends well."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

import anyio
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.resources.quantity import milli
from tests.scheduler.e2e.objects import node, pod
from tests.scheduler.e2e.test_preemption import priority_class
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

NODES = 12
LOW_PER_NODE = 4
STEPS = (
    "scheduler.cycle.before",
    "scheduler.status.before",
    "scheduler.status.after",
    "scheduler.preempt.before",
    "scheduler.preempt.victim.marked",
    "scheduler.preempt.victim.after",
    "scheduler.bind.before",
    "scheduler.bind.after",
)
TWO_DEATHS = ("scheduler.preempt.victim.marked=8*off->crash", "scheduler.status.after=4*off->crash")
_RNG = random.Random(36)
MANY_DEATHS = tuple(f"{_RNG.choice(STEPS)}={_RNG.randrange(8)}*off->crash" for _ in range(14))


async def pods(client: Client) -> list[core.Pod]:
    return list((await client.list(kinds.POD, "default")).items)


async def everything_is_in_order(client: Client, were: dict[str, str]) -> None:
    """Every preemptor has one node and had no other, no node is too full, and no pod was evicted in vain."""
    used: dict[str, int] = {}
    left = 0
    for each in await pods(client):
        assert each.status.nominatedNodeName == "", each.metadata.name
        assert each.spec.nodeName
        assert were.get(each.metadata.uid, each.spec.nodeName) == each.spec.nodeName
        cpu = milli(each.spec.containers[0].resources.requests["cpu"])
        used[each.spec.nodeName] = used.get(each.spec.nodeName, 0) + cpu
        left += each.metadata.name.startswith("low")
    assert max(used.values()) <= 4000
    assert left == NODES  # three of four had to go on each node, no more


@pytest.mark.parametrize("deaths", [TWO_DEATHS, pytest.param(MANY_DEATHS, marks=pytest.mark.slow)])
async def test_the_scheduler_dies_while_it_preempts(cluster: Cluster, deaths: Sequence[str]) -> None:
    cluster.arguments("apiserver", "--disable-admission-plugins=TaintNodesByCondition")
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        await client.create(priority_class("high", 1000))
        async with anyio.create_task_group() as group:
            for number in range(NODES):
                group.start_soon(client.create, node(f"n{number}"))
                for index in range(LOW_PER_NODE):
                    low = pod(f"low-{number}-{index}", cpu="900m", nodeName=f"n{number}")
                    low.spec.terminationGracePeriodSeconds = 0
                    group.start_soon(client.create, low)
        async with anyio.create_task_group() as group:
            for number in range(NODES):
                high = pod(f"high-{number}", cpu="3", priorityClassName="high")
                group.start_soon(client.create, high)
        bound: dict[str, str] = {}
        for death in deaths:
            cluster.arguments("scheduler", f"--failpoints={death}")
            cluster.spawn("scheduler")
            # A life may also end its work before its step comes; then it is killed.
            await eventually(lambda: _is_over(cluster, client), bool)
            cluster.kill("scheduler")
            await _no_eviction_under_way(cluster, client)
            for each in await pods(client):
                if each.spec.nodeName:
                    assert bound.setdefault(each.metadata.uid, each.spec.nodeName) == each.spec.nodeName
        cluster.arguments("scheduler")
        await cluster.start("scheduler")
        await eventually(lambda: _pending(client), lambda count: count == 0)
        await everything_is_in_order(client, bound)


async def _pending(client: Client) -> int:
    """How many are not bound. Does a kubelet's part: a deletion whose caller died stops at the mark."""
    found = await pods(client)
    for each in found:
        if each.metadata.HasField("deletionTimestamp"):
            with suppress(StatusError):
                await client.delete(kinds.POD, each.metadata.name, "default", grace_period_seconds=0)
    return sum(not each.spec.nodeName for each in found)


async def _no_eviction_under_way(cluster: Cluster, client: Client) -> None:
    """Wait until no pod is being deleted, as a call of the killed scheduler may still be carried out.

    A victim that another client deletes while the next scheduler preempts it does not wake the preemptor
    (kubernetes/kubernetes#141694).
    """
    idle = 'apiserver_current_inflight_requests{request_kind="mutating"} 0.0'
    await eventually(
        lambda: cluster.ask("apiserver", "/metrics").text, lambda text: idle in text.splitlines()
    )
    await eventually(lambda: _deletions(client), lambda count: count == 0)


async def _deletions(client: Client) -> int:
    await _pending(client)
    return sum(each.metadata.HasField("deletionTimestamp") for each in await pods(client))


async def _is_over(cluster: Cluster, client: Client) -> bool:
    return cluster.processes["scheduler"].poll() is not None or not await _pending(client)
