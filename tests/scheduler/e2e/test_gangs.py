"""A gang on real processes: held back, placed as a whole, and its group's status written (KEP-4671)."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.pb import workloads
from nominee.machinery.client.api_client import Client
from nominee.machinery.wire import codec
from tests.scheduler.e2e.objects import bound, node, pod, pod_when, scheduled_condition
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

GATES = ("--emulated-version=1.36", "--feature-gates=GenericWorkload=true,GangScheduling=true")
NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"


async def placed(client: Client) -> str:
    group = await client.get(kinds.POD_GROUP, "g", "default")
    return next((c.status for c in group.status.conditions if c.type == "PodGroupScheduled"), "")


@pytest.mark.slow
async def test_a_gang_gets_its_nodes_when_there_is_room_for_all(cluster: Cluster) -> None:
    cluster.arguments("apiserver", *GATES, NO_TAINTS)
    cluster.arguments("scheduler", *GATES)
    await cluster.start("etcd", "apiserver", "scheduler")
    async with cluster.client() as client:
        policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        group = {"metadata": {"name": "g", "namespace": "default"}, "spec": policy}
        await client.create(codec.from_json(workloads.PodGroup, group))
        await client.create(node("n1", cpu="2"))
        names = [f"p{number}" for number in range(3)]
        for name in names:
            await client.create(pod(name, cpu="1", schedulingGroup={"podGroupName": "g"}))
        for name in names:
            await pod_when(client, name, lambda p: scheduled_condition(p) is not None)
        await eventually(lambda: placed(client), "False".__eq__)
        for name in names:
            assert not (await client.get(kinds.POD, name, "default")).spec.nodeName
        await client.create(node("n2", cpu="1"))
        assert sorted([await bound(client, name) for name in names]) == ["n1", "n1", "n2"]
        await eventually(lambda: placed(client), "True".__eq__)


@pytest.mark.slow
async def test_pod_groups_are_not_served_without_the_gate(cluster: Cluster) -> None:
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        with pytest.raises(StatusError) as rejected:
            await client.list(kinds.POD_GROUP, "default")
        assert is_not_found(rejected.value)
        made = await client.create(pod("p", schedulingGroup={"podGroupName": "g"}))
        assert not made.spec.HasField("schedulingGroup")
