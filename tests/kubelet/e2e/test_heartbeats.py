"""Heartbeats: leases are renewed, and statuses that other clients wrote are corrected."""

from __future__ import annotations

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is
from nominee.machinery.api.pb import coordination
from tests.kubelet.e2e.support import KUBELET, is_ready, lab, pod
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

GPU = "example.com/gpu"


async def test_leases_are_renewed(cluster: Cluster) -> None:
    async with lab(cluster, "--node-lease-duration", "4s", nodes=20) as here:

        async def leases() -> dict[str, coordination.Lease]:
            listed = await here.client.list(kinds.LEASE, "kube-node-lease")
            return {row.metadata.name: row for row in listed.items}

        # A kubelet is ready before its nodes' leases are written.
        before = await eventually(leases, lambda found: len(found) == 20)

        async def all_renewed() -> bool:
            now = await leases()
            return all(
                now[name].metadata.resourceVersion != old.metadata.resourceVersion
                for name, old in before.items()
            )

        await eventually(all_renewed)


async def test_a_status_that_another_client_wrote_is_corrected(cluster: Cluster) -> None:
    async with lab(cluster, "--node-status-update-frequency", "500ms") as here:
        unknown = {
            "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
        }
        await here.client.patch(kinds.NODE, "node-0", "", unknown, subresource="status")
        await eventually(
            lambda: here.client.get(kinds.NODE, "node-0"),
            lambda node: condition_is(node.status.conditions, "Ready"),
        )


async def test_an_existing_node_is_adopted(cluster: Cluster) -> None:
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


async def test_an_extended_resource_in_a_nodes_capacity_is_kept_and_used(cluster: Cluster) -> None:
    async with lab(cluster, "--node-status-update-frequency", "200ms") as here:

        async def allocatable(text: str) -> None:
            node = await eventually(
                lambda: here.client.get(kinds.NODE, "node-0"),
                lambda node: node.status.allocatable[GPU].string == text,
            )
            assert node.status.capacity[GPU].string == text

        added = {"status": {"capacity": {GPU: "2"}}}
        await here.client.patch(kinds.NODE, "node-0", "", added, subresource="status")
        await allocatable("2")
        await here.create(pod("a", {GPU: "2"}, limits={GPU: "2"}))
        await here.pod("a", is_ready)
        await here.restart_kubelet()
        await allocatable("2")
        await here.create(pod("b", {GPU: "1"}, limits={GPU: "1"}))
        refused = await here.pod("b", lambda one: one.status.phase == "Failed")
        assert refused.status.reason == f"OutOf{GPU}"
        taken = {"status": {"capacity": {GPU: None}}}
        await here.client.patch(kinds.NODE, "node-0", "", taken, subresource="status")
        await allocatable("")


async def test_pods_are_admitted_by_the_nodes_ephemeral_storage(cluster: Cluster) -> None:
    async with lab(cluster, "--node-ephemeral-storage", "10Gi") as here:
        node = await here.client.get(kinds.NODE, "node-0")
        assert node.status.allocatable["ephemeral-storage"].string == "10Gi"
        await here.create(pod("a", {"ephemeral-storage": "8Gi"}))
        await here.pod("a", is_ready)
        await here.create(pod("b", {"ephemeral-storage": "3Gi"}))
        refused = await here.pod("b", lambda one: one.status.phase == "Failed")
        assert refused.status.reason == "OutOfephemeral-storage"
