"""The external gRPC provider protocol on the state of the cloud.

Optional methods that this cloud does not support (prices, options of groups) are UNIMPLEMENTED: autoscalers
then use their defaults. Source: cluster-autoscaler 1.36, externalgrpc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

import grpc
from google.protobuf.message import Message

from nominee.autoscaler.cloud.node_groups import NodeGroup
from nominee.autoscaler.cloud.state import CloudError, CloudState, Instance, InstanceState
from nominee.autoscaler.planning.objects.annotation_keys import GPU_LABEL
from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.runtime.failpoints import FailpointError
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc

INCREASE_BEFORE = failpoints.declare(
    "cloud.increase.before", "the cloud provider has a call to grow a group; the target size is unchanged"
)
INCREASE_AFTER = failpoints.declare(
    "cloud.increase.after", "the target size is increased; the caller has no answer"
)
DELETE_BEFORE = failpoints.declare(
    "cloud.delete.before", "the cloud provider has a call to delete nodes; no instance is deleted"
)
DELETE_AFTER = failpoints.declare(
    "cloud.delete.after", "the instances are being deleted; the caller has no answer"
)
_STATES = {
    InstanceState.CREATING: protocol.InstanceStatus.instanceCreating,
    InstanceState.RUNNING: protocol.InstanceStatus.instanceRunning,
    InstanceState.DELETING: protocol.InstanceStatus.instanceDeleting,
}
_Context: TypeAlias = "grpc.aio.ServicerContext[Message, Message]"


class CloudServicer(protocol_grpc.CloudProviderServicer):
    """Answers requests from the state. `changed` must save the state; it is called before the answer."""

    def __init__(self, state: CloudState, clock: Clock, changed: Callable[[], None]) -> None:
        self._state = state
        self._clock = clock
        self._changed = changed

    async def NodeGroups(
        self, request: protocol.NodeGroupsRequest, context: _Context
    ) -> protocol.NodeGroupsResponse:
        groups = [_group(group) for group in self._state.groups.values()]
        return protocol.NodeGroupsResponse(nodeGroups=groups)

    async def NodeGroupForNode(
        self, request: protocol.NodeGroupForNodeRequest, context: _Context
    ) -> protocol.NodeGroupForNodeResponse:
        # For a node of another provider the protocol has a group without an ID.
        group = self._state.group_of(request.node.providerID) or self._state.group_of(request.node.name)
        return protocol.NodeGroupForNodeResponse(
            nodeGroup=_group(group) if group is not None else protocol.NodeGroup()
        )

    async def GPULabel(
        self, request: protocol.GPULabelRequest, context: _Context
    ) -> protocol.GPULabelResponse:
        return protocol.GPULabelResponse(label=GPU_LABEL)

    async def GetAvailableGPUTypes(
        self, request: protocol.GetAvailableGPUTypesRequest, context: _Context
    ) -> protocol.GetAvailableGPUTypesResponse:
        return protocol.GetAvailableGPUTypesResponse()

    async def Cleanup(self, request: protocol.CleanupRequest, context: _Context) -> protocol.CleanupResponse:
        return protocol.CleanupResponse()

    async def Refresh(self, request: protocol.RefreshRequest, context: _Context) -> protocol.RefreshResponse:
        self._state.refresh()
        return protocol.RefreshResponse()

    async def NodeGroupTargetSize(
        self, request: protocol.NodeGroupTargetSizeRequest, context: _Context
    ) -> protocol.NodeGroupTargetSizeResponse:
        try:
            return protocol.NodeGroupTargetSizeResponse(targetSize=self._state.target(request.id))
        except CloudError as error:
            await _refuse(context, error)

    async def NodeGroupIncreaseSize(
        self, request: protocol.NodeGroupIncreaseSizeRequest, context: _Context
    ) -> protocol.NodeGroupIncreaseSizeResponse:
        try:
            await INCREASE_BEFORE.hit(group=request.id, delta=request.delta)
            self._state.increase(request.id, request.delta, self._clock.now())
            self._changed()
            await INCREASE_AFTER.hit(group=request.id, delta=request.delta)
        except (CloudError, FailpointError, StatusError) as error:
            self._changed()
            await _refuse(context, error)
        return protocol.NodeGroupIncreaseSizeResponse()

    async def NodeGroupDeleteNodes(
        self, request: protocol.NodeGroupDeleteNodesRequest, context: _Context
    ) -> protocol.NodeGroupDeleteNodesResponse:
        ids = [node.providerID or node.name for node in request.nodes]
        try:
            await DELETE_BEFORE.hit(group=request.id, nodes=",".join(ids))
            self._state.delete(request.id, ids, self._clock.now())
            self._changed()
            await DELETE_AFTER.hit(group=request.id, nodes=",".join(ids))
        except (CloudError, FailpointError, StatusError) as error:
            await _refuse(context, error)
        return protocol.NodeGroupDeleteNodesResponse()

    async def NodeGroupDecreaseTargetSize(
        self, request: protocol.NodeGroupDecreaseTargetSizeRequest, context: _Context
    ) -> protocol.NodeGroupDecreaseTargetSizeResponse:
        try:
            self._state.decrease_target(request.id, request.delta)
            self._changed()
        except CloudError as error:
            await _refuse(context, error)
        return protocol.NodeGroupDecreaseTargetSizeResponse()

    async def NodeGroupNodes(
        self, request: protocol.NodeGroupNodesRequest, context: _Context
    ) -> protocol.NodeGroupNodesResponse:
        try:
            instances = self._state.of_group(request.id)
        except CloudError as error:
            await _refuse(context, error)
        failures = self._state.group(request.id).failures
        rows = []
        for instance in instances:
            row = _instance(instance)
            if instance.error_code:
                row.status.errorInfo.errorCode = instance.error_code
                row.status.errorInfo.errorMessage = failures.error_message
                row.status.errorInfo.instanceErrorClass = failures.error_class
            rows.append(row)
        return protocol.NodeGroupNodesResponse(instances=rows)

    async def NodeGroupTemplateNodeInfo(
        self, request: protocol.NodeGroupTemplateNodeInfoRequest, context: _Context
    ) -> protocol.NodeGroupTemplateNodeInfoResponse:
        try:
            template = self._state.group(request.id).template
        except CloudError as error:
            await _refuse(context, error)
        return protocol.NodeGroupTemplateNodeInfoResponse(
            nodeBytes=template.SerializeToString(deterministic=True)
        )

    async def NodeGroupGetOptions(self, request: Message, context: _Context) -> NoReturn:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "not supported by this cloud")
        raise AssertionError("abort returned")

    PricingNodePrice = PricingPodPrice = NodeGroupGetOptions


def _group(group: NodeGroup) -> protocol.NodeGroup:
    debug = f"{group.name} ({group.min}:{group.max})"
    return protocol.NodeGroup(id=group.name, minSize=group.min, maxSize=group.max, debug=debug)


def _instance(instance: Instance) -> protocol.Instance:
    status = protocol.InstanceStatus(instanceState=_STATES[instance.state])
    return protocol.Instance(id=instance.id, status=status)


async def _refuse(context: _Context, error: Exception) -> NoReturn:
    code = grpc.StatusCode[error.code] if isinstance(error, CloudError) else grpc.StatusCode.INTERNAL
    await context.abort(code, str(error))
    raise AssertionError("abort returned")
