"""A pod's way from pending to bound, on real processes."""

from __future__ import annotations

import anyio
import pytest

from nominee.machinery.api import kinds
from tests.scheduler.e2e.objects import (
    bound,
    debug_queue,
    message_when,
    node,
    pod,
    pod_when,
    scheduled_condition,
)
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"


async def start(cluster: Cluster, *arguments: str) -> None:
    """Etcd, API server and scheduler."""
    cluster.arguments("apiserver", NO_TAINTS)
    cluster.arguments("scheduler", *arguments)
    await cluster.start("etcd", "apiserver", "scheduler")


async def test_a_pod_is_bound_and_an_unfit_one_has_the_reason_in_its_condition(cluster: Cluster) -> None:
    await start(cluster)
    async with cluster.client() as client:
        await client.create(pod("early"))
        early = await pod_when(client, "early", lambda p: scheduled_condition(p) is not None)
        condition = scheduled_condition(early)
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        assert condition.message == "no nodes available to schedule pods"

        for name in ("n1", "n2"):
            await client.create(node(name))
        assert await bound(client, "early") in ("n1", "n2")

        await client.create(pod("big", cpu="5"))
        # The scheduler may see the pod before the second node, which lets it try again.
        await message_when(client, "big", "0/2 nodes are available: 2 Insufficient cpu.")
        (waiting,) = await eventually(lambda: debug_queue(cluster.port("scheduler"))["unschedulable"])
        assert waiting["pod"] == "default/big"
        assert "NodeResourcesFit" in waiting["plugins"]

        await client.create(node("n3", cpu="8"))
        assert await bound(client, "big") == "n3"

        async def reasons() -> set[tuple[str, str]]:
            events = await client.list(kinds.EVENTS_EVENT, "default")
            return {(event.regarding.name, event.reason) for event in events.items}

        await eventually(reasons, lambda found: {("big", "FailedScheduling"), ("big", "Scheduled")} <= found)


@pytest.mark.slow
async def test_many_pods_at_once(cluster: Cluster) -> None:
    await start(cluster)
    async with cluster.client() as client:
        for number in range(10):
            await client.create(node(f"n{number}"))
        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(client.create, pod(f"p{number}"))
        for number in range(100):
            await bound(client, f"p{number}")
        pods = (await client.list(kinds.POD, "default")).items
        by_node: dict[str, int] = {}
        for each in pods:
            by_node[each.spec.nodeName] = by_node.get(each.spec.nodeName, 0) + 1
        assert sorted(by_node.values()) == [10] * 10  # the least allocated node gets the next pod
