"""Nodes of the cloud: polls the provider for its instances, and has the process run a node for each.

Speaks the autoscaler's external provider protocol (externalgrpc). An instance that is gone is run no more;
its Node object is the cloud's to delete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import grpc.aio
from google.protobuf.message import Message

from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client import credentials
from nominee.machinery.client.calls.unary_call import call_unary
from nominee.machinery.client.credentials import Credential
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.failpoints import FailpointError
from nominee.machinery.runtime.faults import call_faults
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as cloud
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as cloud_grpc

T = TypeVar("T")
CLOUD = "cloud"
call_faults.declare(CLOUD, ("NodeGroups", "NodeGroupNodes", "NodeGroupTemplateNodeInfo"))
POLL_SECONDS = 1.0
CALL_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudInstance:
    """An instance that runs. `template` is the template node of its group."""

    id: str
    group: str
    template: core.Node


@dataclass(frozen=True, slots=True)
class Provider:
    """Address and credential of a provider; a plain port needs no credential (None)."""

    address: str
    credential: Credential | None = None


@dataclass(slots=True)
class CloudWatcher:
    """Calls `appeared` and `disappeared` for instances, by id, as polls find them.

    `find` gives the provider, None while it is not known; it is asked again after a failure, since a
    restarted provider may be elsewhere.
    """

    find: Callable[[], Provider | None]
    clock: Clock
    appeared: Callable[[CloudInstance], Awaitable[None]]
    disappeared: Callable[[str], Awaitable[None]]
    known: set[str] = field(default_factory=set)
    _failing: bool = False

    async def run(self) -> None:
        """Poll until cancelled; a provider that cannot be reached is called again."""
        while True:
            provider = self.find()
            if provider is not None:
                await self._follow(provider)
            await self.clock.sleep(POLL_SECONDS)

    async def _follow(self, provider: Provider) -> None:
        """Poll one provider until that fails."""
        async with credentials.channel(provider.address, provider.credential) as channel:
            stub = cloud_grpc.CloudProviderStub(channel)
            while True:
                try:
                    await self.poll(stub)
                except (grpc.aio.AioRpcError, StatusError) as error:
                    if not self._failing:
                        text = error.message if isinstance(error, StatusError) else error.details()
                        logs.get().warning("Cloud cannot be asked", cloud=provider.address, error=text)
                    self._failing = True
                    return
                self._failing = False
                await self.clock.sleep(POLL_SECONDS)

    async def poll(self, stub: cloud_grpc.CloudProviderStub) -> None:
        """Poll once."""
        groups = await _ask(stub.NodeGroups, cloud.NodeGroupsRequest())
        running: dict[str, str] = {}
        for group in groups.nodeGroups:
            answer = await _ask(stub.NodeGroupNodes, cloud.NodeGroupNodesRequest(id=group.id))
            for instance in answer.instances:
                if instance.status.instanceState == cloud.InstanceStatus.instanceRunning:
                    running[instance.id] = group.id
        for gone in sorted(self.known - running.keys()):
            self.known.discard(gone)
            await self.disappeared(gone)
        templates: dict[str, core.Node] = {}
        for new in sorted(running.keys() - self.known):
            group_id = running[new]
            if group_id not in templates:
                templates[group_id] = await self._template(stub, group_id)
            try:
                await self.appeared(CloudInstance(id=new, group=group_id, template=templates[group_id]))
            except (StatusError, FailpointError) as error:
                logs.get().warning("Node cannot be run, will retry", instance=new, error=str(error))
            else:
                self.known.add(new)

    async def _template(self, stub: cloud_grpc.CloudProviderStub, group: str) -> core.Node:
        answer = await _ask(stub.NodeGroupTemplateNodeInfo, cloud.NodeGroupTemplateNodeInfoRequest(id=group))
        return core.Node.FromString(answer.nodeBytes)


async def _ask(method: Callable[..., Awaitable[T]], request: Message) -> T:
    return await call_unary(CLOUD, method, request, CALL_SECONDS_MAX)


def node_name(instance: str) -> str:
    """Return the node of an instance: `group-1` for the id `nominee://group-1`."""
    return instance.rsplit("/", 1)[-1]
