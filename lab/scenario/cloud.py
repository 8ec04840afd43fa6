"""The cloud provider of a cluster, called as the autoscaler calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api.pb import core
from nominee.machinery.client import credentials
from nominee.machinery.process.run_files import RunFile
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc

_CALL_SECONDS_MAX = 10.0


async def increase(directory: Path, group: str, count: int) -> None:
    """Create instances of a node group.

    Raises:
        ClusterError: the cloud does not run, or refuses.
    """
    request = protocol.NodeGroupIncreaseSizeRequest(id=group, delta=count)
    async with _connected(directory, f"the cloud does not increase {group}") as cloud:
        await cloud.NodeGroupIncreaseSize(request, timeout=_CALL_SECONDS_MAX)


async def delete(directory: Path, group: str, nodes: Sequence[core.Node]) -> None:
    """Delete the instances of nodes.

    Raises:
        ClusterError: the cloud does not run, or refuses.
    """
    listed = [
        protocol.ExternalGrpcNode(name=node.metadata.name, providerID=node.spec.providerID) for node in nodes
    ]
    request = protocol.NodeGroupDeleteNodesRequest(id=group, nodes=listed)
    async with _connected(directory, f"the cloud does not delete nodes of {group}") as cloud:
        await cloud.NodeGroupDeleteNodes(request, timeout=_CALL_SECONDS_MAX)


@asynccontextmanager
async def _connected(directory: Path, refusal: str) -> AsyncIterator[protocol_grpc.CloudProviderStub]:
    """Yield a client of the cloud; `refusal` begins the message of an error. Raises: ClusterError."""
    cloud = RunFile.read(directory, "cloud")
    if cloud is None:
        raise ClusterError("the cloud does not run")
    try:
        credential = credentials.find_certificate(cloud, directory, credentials.ADMIN)
    except credentials.NoCredential as error:
        raise ClusterError(str(error)) from None
    async with credentials.channel(cloud.grpc, credential) as channel:
        try:
            yield protocol_grpc.CloudProviderStub(channel)
        except grpc.aio.AioRpcError as error:
            raise ClusterError(f"{refusal}: {error.details()}") from None
