"""Claims on devices, on real processes: from a template to an allocation, and free again."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import devices
from nominee.machinery.client.api_client import Client, retry_unavailable
from tests.scheduler.e2e.objects import bound, node, pod, pod_when, scheduled_condition
from tests.support.cluster import Cluster
from tests.support.devices import DRIVER, claim, device, device_class, resource_slice, template, using
from tests.support.eventually import eventually

NO_TAINTS = "--disable-admission-plugins=TaintNodesByCondition"
FINALIZER = "resource.kubernetes.io/delete-protection"


async def _claims(client: Client) -> list[devices.ResourceClaim]:
    found = await retry_unavailable(lambda: client.list(kinds.RESOURCE_CLAIM, "default"))
    return sorted(found.items, key=lambda claim: claim.metadata.name)


async def test_pods_get_devices_from_a_template_and_give_them_back(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    await cluster.start("etcd", "apiserver", "scheduler", "controllers")
    async with cluster.client() as client:
        for name in ("n1", "n2"):
            await client.create(node(name))
        await client.create(device_class("gpu", f'device.driver == "{DRIVER}"'))
        await client.create(template("one-gpu"))
        await client.create(resource_slice("s1", device("gpu-0"), node="n1"))
        await client.create(resource_slice("s2", device("gpu-0"), node="n2"))
        for name in ("a", "b"):
            await client.create(using(pod(name), template="one-gpu"))
        assert {await bound(client, "a"), await bound(client, "b")} == {"n1", "n2"}
        claims = await eventually(
            lambda: _claims(client), lambda found: all(c.status.HasField("allocation") for c in found)
        )
        assert [len(c.status.reservedFor) for c in claims] == [1, 1]
        assert all(FINALIZER in c.metadata.finalizers for c in claims)
        taken = {(r.pool, r.device) for c in claims for r in c.status.allocation.devices.results}
        assert taken == {("s1", "gpu-0"), ("s2", "gpu-0")}

        await client.create(using(pod("c"), template="one-gpu"))
        waiting = await pod_when(
            client, "c", lambda p: (c := scheduled_condition(p)) is not None and "allocate" in c.message
        )
        condition = scheduled_condition(waiting)
        assert condition is not None
        assert condition.message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")

        where = (await client.get(kinds.POD, "a", "default")).spec.nodeName
        await client.delete(kinds.POD, "a", "default", grace_period_seconds=0)
        assert await bound(client, "c") == where


@pytest.mark.slow
async def test_a_scheduler_that_dies_after_the_allocation_gives_the_same_device(cluster: Cluster) -> None:
    cluster.arguments("apiserver", NO_TAINTS)
    cluster.arguments("scheduler", "--failpoints=scheduler.claims.written=crash")
    await cluster.start("etcd", "apiserver")
    async with cluster.client() as client:
        for name in ("n1", "n2"):
            await client.create(node(name))
            await client.create(resource_slice(f"s-{name}", device("gpu-0"), node=name))
        await client.create(device_class("gpu"))
        await client.create(claim("mine"))
        cluster.spawn("scheduler")
        await client.create(using(pod("p"), claim="mine"))
        assert await cluster.exited("scheduler") < 0
        before = (await _claims(client))[0]
        assert before.status.HasField("allocation")
        cluster.arguments("scheduler")
        await cluster.start("scheduler")
        where = await bound(client, "p")
        after = (await _claims(client))[0]
        assert [r.pool for r in after.status.allocation.devices.results] == [f"s-{where}"]
        assert after.status == before.status
