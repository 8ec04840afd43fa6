"""Real processes: the kubelet registers instances as nodes, and the cloud deletes their Node objects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

GROUPS = """
nodeGroups:
- name: small
  max: 3
  target: 1
  provisioningDelay: 100ms
  template: {cpu: "4", memory: 16Gi, pods: 110, taints: [{key: a, value: b, effect: NoSchedule}]}
"""


@asynccontextmanager
async def cloud_of(cluster: Cluster) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(cluster.run_file("cloud").grpc) as channel:
        yield protocol_grpc.CloudProviderStub(channel)


async def nodes_are(client: Client, *names: str) -> list[core.Node]:
    """Wait until these are the ready nodes; return them."""

    async def listed() -> list[core.Node]:
        return (await client.list(kinds.NODE)).items

    def all_ready(found: list[core.Node]) -> bool:
        ready = [n.metadata.name for n in found if condition_is(n.status.conditions, "Ready")]
        return ready == list(names) and len(found) == len(names)

    return await eventually(listed, all_ready)


async def start(cluster: Cluster, groups: str = GROUPS) -> None:
    file = cluster.directory / "groups.yaml"
    file.write_text(groups, encoding="utf-8")
    cluster.arguments("cloud", "--node-groups", str(file))
    cluster.arguments("kubelet-0", "--nodes", "0", "--cloud")
    await cluster.start("etcd", "apiserver", "cloud", "kubelet-0")


async def test_instances_become_nodes_and_are_deleted(cluster: Cluster) -> None:
    await start(cluster)
    async with cluster.client() as client, cloud_of(cluster) as cloud:
        (node,) = await nodes_are(client, "small-1")
        assert node.spec.providerID == "small-1"
        assert node.metadata.labels["nominee.dev/node-group"] == "small"
        assert node.status.allocatable["cpu"].string == "4"
        assert "a" in [taint.key for taint in node.spec.taints]
        await cloud.NodeGroupIncreaseSize(protocol.NodeGroupIncreaseSizeRequest(id="small", delta=1))
        await nodes_are(client, "small-1", "small-2")
        # No instance is lost by kill -9.
        cluster.kill("cloud")
        await cluster.start("cloud")
    async with cluster.client() as client, cloud_of(cluster) as cloud:
        size = await cloud.NodeGroupTargetSize(protocol.NodeGroupTargetSizeRequest(id="small"))
        assert size.targetSize == 2
        doomed = protocol.ExternalGrpcNode(name="small-1", providerID="small-1")
        await cloud.NodeGroupDeleteNodes(protocol.NodeGroupDeleteNodesRequest(id="small", nodes=[doomed]))
        await nodes_are(client, "small-2")
        size = await cloud.NodeGroupTargetSize(protocol.NodeGroupTargetSizeRequest(id="small"))
        assert size.targetSize == 1

        async def group() -> str:
            answer = await cloud.NodeGroupForNode(protocol.NodeGroupForNodeRequest(node=doomed))
            return str(answer.nodeGroup.id)

        # An instance is forgotten after its Node object is deleted.
        await eventually(group, lambda found: found == "")


@pytest.mark.slow
async def test_a_deletion_is_finished_after_a_crash(cluster: Cluster) -> None:
    await start(cluster)
    cluster.arguments(
        "cloud", "--node-groups", str(cluster.directory / "groups.yaml"),
        "--failpoints", "cloud.node-delete.before=crash",
    )  # fmt: skip
    cluster.kill("cloud")
    await cluster.start("cloud")
    async with cluster.client() as client:
        await nodes_are(client, "small-1")
        async with cloud_of(cluster) as cloud:
            doomed = protocol.ExternalGrpcNode(name="small-1", providerID="small-1")
            request = protocol.NodeGroupDeleteNodesRequest(id="small", nodes=[doomed])
            try:
                await cloud.NodeGroupDeleteNodes(request)
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017  # it died before or after
        assert await cluster.exited("cloud") == -9
        cluster.arguments("cloud", "--node-groups", str(cluster.directory / "groups.yaml"))
        await cluster.start("cloud")
        await nodes_are(client)


async def test_optional_methods_are_unimplemented(cluster: Cluster) -> None:
    cluster.arguments("cloud")
    await cluster.start("cloud")
    async with cloud_of(cluster) as cloud:
        assert not (await cloud.NodeGroups(protocol.NodeGroupsRequest())).nodeGroups
        for call in (
            cloud.NodeGroupGetOptions(protocol.NodeGroupAutoscalingOptionsRequest(id="x")),
            cloud.PricingNodePrice(protocol.PricingNodePriceRequest()),
        ):
            code = await _code(call)
            assert code is grpc.StatusCode.UNIMPLEMENTED
        code = await _code(cloud.NodeGroupTargetSize(protocol.NodeGroupTargetSizeRequest(id="x")))
        assert code is grpc.StatusCode.NOT_FOUND


async def _code(call: Any) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK
