"""Pods spread over topology domains, on real processes."""

from __future__ import annotations

from typing import Any

from nominee.machinery.api.pb import core, meta
from tests.scheduler.e2e.objects import bound, message_when, node, pod
from tests.support.cluster import Cluster

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


async def start(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler")


def labelled(name: str, **spec: Any) -> core.Pod:
    made = pod(name, **spec)
    made.metadata.labels["app"] = "a"
    return made


async def test_a_pod_waits_for_a_domain_with_room(cluster: Cluster) -> None:
    await start(cluster)
    constraint = {
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }  # fmt: skip
    async with cluster.client() as client:
        await client.create(node("n1", labels={ZONE: "a"}))
        await client.create(node("n2", cpu="50m", labels={ZONE: "b"}))
        await client.create(node("n3"))
        await client.create(labelled("p1", topologySpreadConstraints=[constraint]))
        assert await bound(client, "p1") == "n1"
        await client.create(labelled("p2", topologySpreadConstraints=[constraint]))
        # The scheduler may see the pod before the last node, which lets it try again.
        await message_when(
            client,
            "p2",
            "0/3 nodes are available: 1 Insufficient cpu, "
            "1 node(s) didn't match pod topology spread constraints, "
            "1 node(s) didn't match pod topology spread constraints (missing required label).",
        )
        await client.create(node("n4", labels={ZONE: "b"}))
        assert await bound(client, "p2") == "n4"


async def test_a_service_makes_its_pods_spread(cluster: Cluster) -> None:
    """Without a look at the service n1, which has much more room, would get every pod."""
    await start(cluster)
    async with cluster.client() as client:
        for name in ("n1", "n2"):
            await client.create(node(name, labels={HOST: name}))
        await client.create(pod("filler", cpu="3", nodeName="n2"))
        await client.create(labelled("first", cpu="1m"))
        assert await bound(client, "first") == "n1"
        await client.create(
            core.Service(
                metadata=meta.ObjectMeta(name="s", namespace="default"),
                spec=core.ServiceSpec(selector={"app": "a"}, ports=[core.ServicePort(port=80)]),
            )
        )
        # The scheduler may see a pod before it sees the service.
        chosen: list[str] = []
        while "n2" not in chosen and len(chosen) < 100:
            name = f"p{len(chosen)}"
            await client.create(labelled(name, cpu="1m"))
            chosen.append(await bound(client, name))
        assert chosen[-1] == "n2"
