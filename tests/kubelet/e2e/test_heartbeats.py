"""A node shows that it lives, and says the truth again when another wrote over it."""

from __future__ import annotations

import anyio

from machinery import kinds
from tests.kubelet.e2e.support import KUBELET, lab
from tests.support.cluster import WAIT_SECONDS_MAX, Cluster


async def test_leases_are_renewed(cluster: Cluster) -> None:
    async with lab(cluster, "--node-lease-duration", "4s", nodes=20) as here:
        before = {row.metadata.name: row for row in (await here.client.list(kinds.LEASE)).items}
        with anyio.fail_after(WAIT_SECONDS_MAX):
            while True:
                now = {row.metadata.name: row for row in (await here.client.list(kinds.LEASE)).items}
                if all(
                    now[name].metadata.resourceVersion != old.metadata.resourceVersion
                    for name, old in before.items()
                ):
                    break
                await anyio.sleep(0.1)


async def test_a_status_that_another_wrote_is_set_right(cluster: Cluster) -> None:
    async with lab(cluster, "--node-status-update-frequency", "500ms") as here:
        unknown = {
            "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
        }
        await here.client.patch(kinds.NODE, "node-0", "", unknown, subresource="status")
        with anyio.fail_after(WAIT_SECONDS_MAX):
            while True:
                node = await here.client.get(kinds.NODE, "node-0")
                if {row.type: row.status for row in node.status.conditions}["Ready"] == "True":
                    break
                await anyio.sleep(0.05)


async def test_a_node_that_exists_is_taken_over(cluster: Cluster) -> None:
    async with lab(cluster, "--node-labels", "disk=ssd") as here:
        await here.client.patch(
            kinds.NODE, "node-0", "", {"metadata": {"labels": {"mine": "1", "disk": "hdd"}}}
        )
        uid = (await here.client.get(kinds.NODE, "node-0")).metadata.uid
        cluster.arguments(KUBELET, "--nodes", "1", "--node-labels", "disk=ssd", "--node-cpu", "8")
        await here.restart_kubelet(kill=False)
        node = await here.client.get(kinds.NODE, "node-0")
        assert node.metadata.uid == uid
        assert (node.metadata.labels["mine"], node.metadata.labels["disk"]) == ("1", "ssd")
        assert node.status.allocatable["cpu"].string == "8"
