"""Client of the external gRPC provider protocol, for the built-in cloud or any other provider.

Source: cluster-autoscaler 1.36, externalgrpc. Unlike upstream, an error when the groups are listed ends the
loop; upstream goes on without groups.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
import yaml
from cachetools import TTLCache
from google.protobuf.message import DecodeError, Message

from nominee.autoscaler.planning.objects.observation import CloudView, Instance, NodeGroup
from nominee.autoscaler.shell.ports import CloudError
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client import credentials
from nominee.machinery.client.calls import transport
from nominee.machinery.client.calls.unary_call import call_unary
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.faults import call_faults
from nominee.machinery.wire.files import yaml_text
from nominee.machinery.wire.values.scalars import parse_seconds
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc

T = TypeVar("T")
CLOUD = "cloud"
call_faults.declare(
    CLOUD,
    (
        *("Refresh", "NodeGroups", "NodeGroupTargetSize", "NodeGroupNodes", "NodeGroupTemplateNodeInfo"),
        *("NodeGroupForNode", "NodeGroupIncreaseSize", "NodeGroupDecreaseTargetSize"),
        "NodeGroupDeleteNodes",
    ),
)
TIMEOUT_SECONDS = 5.0
UNMANAGED_SECONDS = 60.0
"""The provider is asked again about a node that it does not manage after this time."""
UNMANAGED_NODES_MAX = 10_000
_STATES = {
    protocol.InstanceStatus.instanceRunning: "running",
    protocol.InstanceStatus.instanceCreating: "creating",
    protocol.InstanceStatus.instanceDeleting: "deleting",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudConfig:
    """Address and credentials of the provider (upstream's `--cloud-config`). Timeout in seconds."""

    address: str
    cert: str = ""
    key: str = ""
    cacert: str = ""
    timeout: float = TIMEOUT_SECONDS

    @classmethod
    def read(cls, path: Path) -> CloudConfig:
        """Read the file.

        Raises:
            ValueError: the file cannot be read, or a field is missing or unknown.
        """
        try:
            document = yaml_text.parse(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise ValueError(f"{path}: {error}") from None
        if not isinstance(document, dict) or not document.get("address"):
            raise ValueError(f"{path}: address: required")
        unknown = document.keys() - {"address", "cert", "key", "cacert", "grpc_timeout"}
        if unknown:
            raise ValueError(f"{path}: unknown field {', '.join(sorted(unknown))}")
        return cls(
            address=str(document["address"]),
            cert=str(document.get("cert", "")),
            key=str(document.get("key", "")),
            cacert=str(document.get("cacert", "")),
            timeout=parse_seconds(str(document.get("grpc_timeout", "5s"))),
        )

    def channel(self) -> grpc.aio.Channel:
        """Return a channel to the provider: with mutual TLS if there is a certificate, else not encrypted."""
        if not self.cert:
            return credentials.channel(self.address, None)
        mutual = grpc.ssl_channel_credentials(
            root_certificates=Path(self.cacert).read_bytes() if self.cacert else None,
            private_key=Path(self.key).read_bytes(),
            certificate_chain=Path(self.cert).read_bytes(),
        )
        return transport.current().channel(self.address, mutual, ())


class ExternalProvider:
    """The provider as the executor's port. The caller closes `channel`.

    `reconnect` returns another channel when the provider has another address, else None.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        clock: Clock,
        *,
        timeout: float = TIMEOUT_SECONDS,
        reconnect: Callable[[], Awaitable[grpc.aio.Channel | None]] | None = None,
    ) -> None:
        self._stub: Any = protocol_grpc.CloudProviderStub(channel)
        self._reconnect = reconnect
        self._timeout = timeout
        self._unmanaged: TTLCache[tuple[str, str], None] = TTLCache(
            UNMANAGED_NODES_MAX, UNMANAGED_SECONDS, timer=clock.monotonic
        )
        self._templates: dict[str, core.Node | None] = {}

    async def refresh(self, nodes: Sequence[core.Node]) -> CloudView:
        """Return all groups, and to which of them these nodes belong."""
        channel = await self._reconnect() if self._reconnect is not None else None
        if channel is not None:
            self._stub = protocol_grpc.CloudProviderStub(channel)
        await self._ask(self._stub.Refresh, protocol.RefreshRequest())
        listed: protocol.NodeGroupsResponse = await self._ask(
            self._stub.NodeGroups, protocol.NodeGroupsRequest()
        )
        groups: dict[str, NodeGroup] = {}
        members: dict[str, str] = {}
        for row in listed.nodeGroups:
            group = await self._group(row)
            groups[group.id] = group
            members.update((instance.id, group.id) for instance in group.instances)
        self._templates = {name: node for name, node in self._templates.items() if name in groups}
        if groups:
            await self._assign(nodes, members)
        return CloudView(groups=groups, group_of_node=members)

    async def _group(self, row: protocol.NodeGroup) -> NodeGroup:
        target: protocol.NodeGroupTargetSizeResponse = await self._ask(
            self._stub.NodeGroupTargetSize, protocol.NodeGroupTargetSizeRequest(id=row.id)
        )
        nodes: protocol.NodeGroupNodesResponse = await self._ask(
            self._stub.NodeGroupNodes, protocol.NodeGroupNodesRequest(id=row.id)
        )
        if row.id not in self._templates:
            self._templates[row.id] = await self._template(row.id)
        return NodeGroup(
            id=row.id,
            min=row.minSize,
            max=row.maxSize,
            target=target.targetSize,
            template=self._templates[row.id],
            instances=tuple(map(_instance, nodes.instances)),
        )

    async def _template(self, group: str) -> core.Node | None:
        request = protocol.NodeGroupTemplateNodeInfoRequest(id=group)
        try:
            answer = await call_unary(CLOUD, self._stub.NodeGroupTemplateNodeInfo, request, self._timeout)
            return core.Node.FromString(answer.nodeBytes) if answer.nodeBytes else None
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise CloudError(f"template of node group {group}: {status_text(error)}") from None
        except StatusError as error:
            raise CloudError(f"template of node group {group}: {error.message}") from None
        except DecodeError:
            raise CloudError(f"template of node group {group} is not a Node") from None

    async def _assign(self, nodes: Sequence[core.Node], members: dict[str, str]) -> None:
        """Add the groups of these nodes to `members`: by their instances, or else as the provider answers."""
        for node in nodes:
            name, provider_id = node.metadata.name, node.spec.providerID
            group = members.get(provider_id)
            key = (name, provider_id)
            if group is None and key not in self._unmanaged:
                request = protocol.NodeGroupForNodeRequest(node=_node(node))
                group = (await self._ask(self._stub.NodeGroupForNode, request)).nodeGroup.id
                if not group:
                    self._unmanaged[key] = None
            if group:
                members[name] = group

    async def increase(self, group: str, delta: int) -> None:
        request = protocol.NodeGroupIncreaseSizeRequest(id=group, delta=delta)
        await self._ask(self._stub.NodeGroupIncreaseSize, request)

    async def decrease_target(self, group: str, delta: int) -> None:
        request = protocol.NodeGroupDecreaseTargetSizeRequest(id=group, delta=delta)
        await self._ask(self._stub.NodeGroupDecreaseTargetSize, request)

    async def delete_nodes(self, group: str, nodes: Sequence[str]) -> None:
        rows = [protocol.ExternalGrpcNode(name=name, providerID=name) for name in nodes]
        request = protocol.NodeGroupDeleteNodesRequest(id=group, nodes=rows)
        await self._ask(self._stub.NodeGroupDeleteNodes, request)

    async def _ask(self, method: Callable[..., Awaitable[T]], request: Message) -> T:
        """Call a method.

        Raises:
            CloudError: the call has failed.
        """
        try:
            return await call_unary(CLOUD, method, request, self._timeout)
        except grpc.aio.AioRpcError as error:
            raise CloudError(status_text(error)) from None
        except StatusError as error:
            raise CloudError(error.message) from None


def status_text(error: grpc.aio.AioRpcError) -> str:
    """Format the status of a failed call as grpc-go does, and with it upstream's events and logs."""
    name = error.code().name
    code = "Canceled" if name == "CANCELLED" else name.title().replace("_", "")
    return f"rpc error: code = {code} desc = {error.details() or ''}"


def _instance(row: protocol.Instance) -> Instance:
    """Return an instance; without a state, the rest of its status is ignored."""
    state = _STATES.get(row.status.instanceState, "")
    problem = row.status.errorInfo
    if not state or not problem.errorCode:
        return Instance(id=row.id, state=state)
    return Instance(
        id=row.id,
        state=state,
        error_class=problem.instanceErrorClass,
        error_code=problem.errorCode,
        error_message=problem.errorMessage,
    )


def _node(node: core.Node) -> protocol.ExternalGrpcNode:
    return protocol.ExternalGrpcNode(
        providerID=node.spec.providerID,
        name=node.metadata.name,
        labels=dict(node.metadata.labels),
        annotations=dict(node.metadata.annotations),
    )
