"""Preemption on real processes: the nomination is seen, held, and kept from lower pods."""

from __future__ import annotations

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import scheduling
from nominee.machinery.wire import codec
from tests.scheduler.e2e.objects import (
    CLAIM_VOLUMES,
    bound,
    claim,
    debug_queue,
    gone,
    node,
    pod,
    pod_when,
    scheduled_condition,
    storage_class,
)
from tests.support.cluster import Cluster

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"


def priority_class(name: str, value: int) -> scheduling.PriorityClass:
    return codec.from_json(scheduling.PriorityClass, {"metadata": {"name": name}, "value": value})


async def test_a_higher_pod_evicts_waits_and_lands(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")
    port = cluster.port("scheduler")
    async with cluster.client() as client:
        await client.create(priority_class("high", 1000))
        await client.create(priority_class("middle", 500))
        await client.create(node("n1", cpu="2"))
        await client.create(pod("victim", cpu="2", terminationGracePeriodSeconds=30))
        assert await bound(client, "victim") == "n1"

        await client.create(pod("vip", cpu="2", priorityClassName="high"))
        vip = await pod_when(client, "vip", lambda p: p.status.nominatedNodeName == "n1")
        condition = scheduled_condition(vip)
        assert condition is not None
        assert condition.message == "0/1 nodes are available: 1 Insufficient cpu."
        victim = await pod_when(client, "victim", lambda p: p.metadata.HasField("deletionTimestamp"))
        disrupted = next(c for c in victim.status.conditions if c.type == "DisruptionTarget")
        assert disrupted.reason == "PreemptionByScheduler"
        assert debug_queue(port)["nominated"] == {"n1": ["default/vip"]}

        # The room is promised: a pod that comes while the victim still ends does not get it.
        await client.create(pod("overtaker", cpu="1", priorityClassName="middle"))
        await pod_when(client, "overtaker", lambda p: scheduled_condition(p) is not None)
        await client.delete(kinds.POD, "victim", "default", grace_period_seconds=0)
        await gone(client, "victim")
        assert await bound(client, "vip") == "n1"
        overtaker = await client.get(kinds.POD, "overtaker", "default")
        assert overtaker.spec.nodeName == ""
        vip = await client.get(kinds.POD, "vip", "default")
        assert vip.status.nominatedNodeName == ""


async def test_a_pod_in_pre_bind_is_sent_back_and_not_deleted(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await client.create(priority_class("high", 1000))
        await client.create(node("n1", cpu="2"))
        await client.create(storage_class())
        await client.create(claim())
        await client.create(pod("slow", cpu="2", volumes=CLAIM_VOLUMES))
        await pod_when(client, "slow", lambda p: p.status.nominatedNodeName == "n1")
        await client.create(pod("vip", cpu="2", priorityClassName="high"))
        assert await bound(client, "vip") == "n1"
        slow = await pod_when(
            client,
            "slow",
            lambda p: scheduled_condition(p) is not None and not p.status.nominatedNodeName,
        )
        condition = scheduled_condition(slow)
        assert condition is not None
        if condition.reason == "SchedulerError":  # until the next attempt finds the node full
            text = 'running PreBind plugin "VolumeBinding": preempted by DefaultPreemption'
            assert condition.message == text


async def test_a_finished_victim_makes_room_before_it_is_gone(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        await client.create(priority_class("high", 1000))
        await client.create(node("n1", cpu="2"))
        await client.create(pod("victim", cpu="2"))
        assert await bound(client, "victim") == "n1"
        await client.create(pod("vip", cpu="2", priorityClassName="high"))
        await pod_when(client, "victim", lambda p: p.metadata.HasField("deletionTimestamp"))
        finished = {"status": {"phase": "Succeeded"}}
        await client.patch(kinds.POD, "victim", "default", finished, subresource="status")
        assert await bound(client, "vip") == "n1"
        assert (await client.get(kinds.POD, "victim", "default")).status.phase == "Succeeded"
