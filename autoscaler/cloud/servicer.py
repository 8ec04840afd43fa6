"""The external provider protocol over the cloud's state.

What the protocol leaves optional and this cloud has not got (prices, options per group) is UNIMPLEMENTED,
which makes an autoscaler use its own. Source: cluster-autoscaler 1.36, externalgrpc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import grpc
from clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2_grpc as protocol_grpc

from autoscaler.cloud.node_groups import NodeGroup
from autoscaler.cloud.state import CloudError, CloudState, Instance, InstanceState
from machinery.api.errors import StatusError
from machinery.runtime import failpoints
from machinery.runtime.clock import Clock
from machinery.runtime.failpoints import FailpointError

INCREASE_BEFORE = failpoints.declare("cloud.increase.before")
INCREASE_AFTER = failpoints.declare("cloud.increase.after")
DELETE_BEFORE = failpoints.declare("cloud.delete.before")
DELETE_AFTER = failpoints.declare("cloud.delete.after")
_STATES = {
    InstanceState.CREATING: protocol.InstanceStatus.instanceCreating,
    InstanceState.RUNNING: protocol.InstanceStatus.instanceRunning,
    InstanceState.DELETING: protocol.InstanceStatus.instanceDeleting,
}
_Context = grpc.aio.ServicerContext


class CloudServicer(protocol_grpc.CloudProviderServicer):
    """Answers from the state. `changed` keeps what was changed before the answer is given."""

    def __init__(self, state: CloudState, clock: Clock, changed: Callable[[], None]) -> None:
        self._state = state
        self._clock = clock
        self._changed = changed

    async def NodeGroups(self, request: Any, context: _Context[Any, Any]) -> Any:
        groups = [_group(group) for group in self._state.groups.values()]
        return protocol.NodeGroupsResponse(nodeGroups=groups)

    async def NodeGroupForNode(self, request: Any, context: _Context[Any, Any]) -> Any:
        # A node that is not ours gets a group without an id.
        group = self._state.group_of(request.node.providerID) or self._state.group_of(request.node.name)
        return protocol.NodeGroupForNodeResponse(
            nodeGroup=_group(group) if group is not None else protocol.NodeGroup()
        )

    async def GPULabel(self, request: Any, context: _Context[Any, Any]) -> Any:
        return protocol.GPULabelResponse(label="nominee.dev/gpu")

    async def GetAvailableGPUTypes(self, request: Any, context: _Context[Any, Any]) -> Any:
        return protocol.GetAvailableGPUTypesResponse()

    async def Cleanup(self, request: Any, context: _Context[Any, Any]) -> Any:
        return protocol.CleanupResponse()

    async def Refresh(self, request: Any, context: _Context[Any, Any]) -> Any:
        return protocol.RefreshResponse()

    async def NodeGroupTargetSize(self, request: Any, context: _Context[Any, Any]) -> Any:
        try:
            return protocol.NodeGroupTargetSizeResponse(targetSize=self._state.target(request.id))
        except CloudError as error:
            await _refuse(context, error)

    async def NodeGroupIncreaseSize(self, request: Any, context: _Context[Any, Any]) -> Any:
        try:
            await INCREASE_BEFORE.hit(group=request.id, delta=request.delta)
            self._state.increase(request.id, request.delta, self._clock.now())
            self._changed()
            await INCREASE_AFTER.hit(group=request.id, delta=request.delta)
        except (CloudError, FailpointError, StatusError) as error:
            self._changed()
            await _refuse(context, error)
        return protocol.NodeGroupIncreaseSizeResponse()

    async def NodeGroupDeleteNodes(self, request: Any, context: _Context[Any, Any]) -> Any:
        ids = [node.providerID or node.name for node in request.nodes]
        try:
            await DELETE_BEFORE.hit(group=request.id, nodes=",".join(ids))
            self._state.delete(request.id, ids, self._clock.now())
            self._changed()
            await DELETE_AFTER.hit(group=request.id, nodes=",".join(ids))
        except (CloudError, FailpointError, StatusError) as error:
            await _refuse(context, error)
        return protocol.NodeGroupDeleteNodesResponse()

    async def NodeGroupDecreaseTargetSize(self, request: Any, context: _Context[Any, Any]) -> Any:
        try:
            self._state.decrease_target(request.id, request.delta)
            self._changed()
        except CloudError as error:
            await _refuse(context, error)
        return protocol.NodeGroupDecreaseTargetSizeResponse()

    async def NodeGroupNodes(self, request: Any, context: _Context[Any, Any]) -> Any:
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

    async def NodeGroupTemplateNodeInfo(self, request: Any, context: _Context[Any, Any]) -> Any:
        try:
            template = self._state.group(request.id).template
        except CloudError as error:
            await _refuse(context, error)
        return protocol.NodeGroupTemplateNodeInfoResponse(
            nodeBytes=template.SerializeToString(deterministic=True)
        )

    async def NodeGroupGetOptions(self, request: Any, context: _Context[Any, Any]) -> Any:
        await _unimplemented(context)

    async def PricingNodePrice(self, request: Any, context: _Context[Any, Any]) -> Any:
        await _unimplemented(context)

    async def PricingPodPrice(self, request: Any, context: _Context[Any, Any]) -> Any:
        await _unimplemented(context)


def _group(group: NodeGroup) -> Any:
    debug = f"{group.name} ({group.min}:{group.max})"
    return protocol.NodeGroup(id=group.name, minSize=group.min, maxSize=group.max, debug=debug)


def _instance(instance: Instance) -> Any:
    status = protocol.InstanceStatus(instanceState=_STATES[instance.state])
    return protocol.Instance(id=instance.id, status=status)


async def _refuse(context: _Context[Any, Any], error: Exception) -> NoReturn:
    code = grpc.StatusCode[error.code] if isinstance(error, CloudError) else grpc.StatusCode.INTERNAL
    await context.abort(code, str(error))
    raise AssertionError("abort returned")


async def _unimplemented(context: _Context[Any, Any]) -> NoReturn:
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this cloud has not got it")
    raise AssertionError("abort returned")
