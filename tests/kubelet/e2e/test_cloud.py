"""Instances of a cloud become nodes, and are no longer run once they are gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc.aio

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.pb import core
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as cloud
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as cloud_grpc
from tests.kubelet.e2e.support import KUBELET, Lab, is_ready, lab, pod
from tests.support.cluster import Cluster
from tests.support.eventually import eventually


class Provider(cloud_grpc.CloudProviderServicer):
    """One node group; instances and their states are the test's."""

    def __init__(self) -> None:
        self.instances: dict[str, cloud.InstanceStatus.InstanceState] = {}
        self.asked = 0

    async def NodeGroups(self, request: object, context: object) -> cloud.NodeGroupsResponse:
        return cloud.NodeGroupsResponse(nodeGroups=[cloud.NodeGroup(id="pool", minSize=0, maxSize=3)])

    async def NodeGroupNodes(self, request: object, context: object) -> cloud.NodeGroupNodesResponse:
        self.asked += 1
        rows = [
            cloud.Instance(id=name, status=cloud.InstanceStatus(instanceState=state))
            for name, state in self.instances.items()
        ]
        return cloud.NodeGroupNodesResponse(instances=rows)

    async def NodeGroupTemplateNodeInfo(
        self, request: object, context: object
    ) -> cloud.NodeGroupTemplateNodeInfoResponse:
        template = core.Node()
        template.metadata.labels["pool"] = "pool"
        template.spec.taints.add(key="dedicated", value="x", effect="NoSchedule")
        for name, text in {"cpu": "8", "memory": "16Gi", "pods": "20"}.items():
            template.status.capacity[name].string = text
            template.status.allocatable[name].string = text
        return cloud.NodeGroupTemplateNodeInfoResponse(nodeBytes=template.SerializeToString())


@asynccontextmanager
async def provider() -> AsyncIterator[tuple[Provider, str]]:
    server, servicer = grpc.aio.server(), Provider()
    cloud_grpc.add_CloudProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield servicer, f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def node(here: Lab, name: str) -> core.Node:

    async def read() -> core.Node | None:
        try:
            return await here.client.get(kinds.NODE, name)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    found = await eventually(read, explain=lambda: here.cluster.log(KUBELET))
    assert found is not None
    return found


async def test_an_instance_becomes_a_node_and_is_given_up(cluster: Cluster) -> None:
    async with provider() as (servicer, address), lab(cluster, "--cloud-address", address, nodes=0) as here:
        servicer.instances = {
            "nominee://pool-1": cloud.InstanceStatus.instanceRunning,
            "nominee://pool-2": cloud.InstanceStatus.instanceCreating,
        }
        found = await node(here, "pool-1")
        assert found.spec.providerID == "nominee://pool-1"
        assert found.metadata.labels["pool"] == "pool"
        assert found.metadata.labels["kubernetes.io/hostname"] == "pool-1"
        assert found.status.allocatable["cpu"].string == "8"
        assert [taint.key for taint in found.spec.taints] == ["dedicated"]
        assert len((await here.client.list(kinds.NODE)).items) == 1, "one is still being created"
        await here.create(pod("a", {"cpu": "6"}), "pool-1")
        await here.pod("a", is_ready)

        servicer.instances = {}
        asked = servicer.asked
        await eventually(lambda: servicer.asked >= asked + 2)
        await here.create(pod("b", {"cpu": "1"}), "pool-1")
        assert "Instance is gone" in cluster.log(KUBELET)
        assert (await node(here, "pool-1")).metadata.name == "pool-1", "the object is the cloud's to delete"
        seen = await here.get("b")
        assert seen is not None
        assert not seen.status.containerStatuses


async def test_a_cloud_that_is_not_reachable_does_no_harm(cluster: Cluster) -> None:
    async with lab(cluster, "--cloud-address", "127.0.0.1:1") as here:
        await here.create(pod("a", {"cpu": "1"}))
        await here.pod("a", is_ready)
        await eventually(lambda: "Cloud cannot be asked" in cluster.log(KUBELET))
