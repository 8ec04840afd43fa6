"""Nodes for the stories: instances of the built-in cloud, which a kubelet process adopts."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc

from machinery.api.objects import condition_is
from machinery.api.pb import core
from machinery.client import credentials
from machinery.process.run_files import RunFile
from nominee.demo.narration import StoryError
from nominee.demo.stage import Stage

GROUP_LABEL = "nominee.dev/node-group"
_CALL_SECONDS_MAX = 10.0


def is_usable(node: core.Node) -> bool:
    """Return whether a node is ready and has none of the taints of a node that starts."""
    return condition_is(node.status.conditions, "Ready") and not node.spec.taints


def nodes_of(stage: Stage, group: str) -> list[core.Node]:
    """Return the nodes of a node group, by name."""
    found = [node for node in stage.nodes.list() if node.metadata.labels.get(GROUP_LABEL) == group]
    return sorted(found, key=lambda node: node.metadata.name)


class Machines:
    """Create and delete the instances of node groups."""

    def __init__(self, stage: Stage) -> None:
        cloud = RunFile.read(stage.directory, "cloud")
        if cloud is None:
            raise StoryError("the cloud does not run")
        self._stage = stage
        self._address = cloud.grpc
        try:
            self._credential = credentials.find_certificate(cloud, stage.directory, credentials.ADMIN)
        except credentials.NoCredential as error:
            raise StoryError(str(error)) from None

    async def order_all(self, groups: Sequence[str]) -> None:
        """Create one instance of each group, all at once."""
        async with anyio.create_task_group() as tasks:
            for group in groups:
                tasks.start_soon(self.order, group)

    async def give_back_all(self, groups: Sequence[str]) -> None:
        """Delete all instances of these groups."""
        async with anyio.create_task_group() as tasks:
            for group in groups:
                tasks.start_soon(self.give_back, group)

    async def order(self, group: str, count: int = 1) -> list[core.Node]:
        """Create instances of a group; return the group's nodes when pods can run on them."""
        wanted = len(nodes_of(self._stage, group)) + count
        async with credentials.channel(self._address, self._credential) as channel:
            stub = protocol_grpc.CloudProviderStub(channel)
            await stub.NodeGroupIncreaseSize(
                protocol.NodeGroupIncreaseSizeRequest(id=group, delta=count), timeout=_CALL_SECONDS_MAX
            )

        def there() -> list[core.Node] | None:
            found = [node for node in nodes_of(self._stage, group) if is_usable(node)]
            return found if len(found) == wanted else None

        await self._stage.until(f"{wanted} node(s) of {group} are ready", there)
        return nodes_of(self._stage, group)

    async def give_back(self, group: str) -> None:
        """Delete all instances of a group, and wait until their nodes are gone."""
        doomed = nodes_of(self._stage, group)
        if not doomed:
            return
        async with credentials.channel(self._address, self._credential) as channel:
            stub = protocol_grpc.CloudProviderStub(channel)
            nodes = [
                protocol.ExternalGrpcNode(name=node.metadata.name, providerID=node.spec.providerID)
                for node in doomed
            ]
            await stub.NodeGroupDeleteNodes(
                protocol.NodeGroupDeleteNodesRequest(id=group, nodes=nodes), timeout=_CALL_SECONDS_MAX
            )
        await self._stage.until(f"no node of {group} is left", lambda: not nodes_of(self._stage, group))
