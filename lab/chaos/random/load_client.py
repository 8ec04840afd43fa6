"""Perform the load of a plan on any ScenarioCluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import anyio
from google.protobuf.message import Message

from nominee.lab.chaos.random.load import BASE
from nominee.lab.chaos.random.objects import (
    NAMESPACE,
    WORKLOAD_LABEL,
    first_objects,
    members,
    namespace_of,
    objects_of,
)
from nominee.lab.chaos.random.operations import (
    AddNode,
    ChangeTemplate,
    CreateGang,
    CreatePod,
    CreateWorkload,
    DeleteGang,
    DeletePod,
    DeleteWorkload,
    DrainNode,
    EvictWorkload,
    Load,
    Nominate,
    OfNodes,
    OfPods,
    OfWorkloads,
    RemoveNode,
    ResizePod,
    ScaleWorkload,
    SetPolicy,
)
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import retry_unavailable
from nominee.machinery.patch.patch_type import PatchType

GROUP = "pool"
Chosen = TypeVar("Chosen", core.Pod, core.Node)
_GROUP_LABEL = "nominee.dev/node-group"
_KINDS: dict[str, AnyKind] = {"ReplicaSet": kinds.REPLICA_SET, "Deployment": kinds.DEPLOYMENT}


class LoadClient:
    """Performs load; a method raises StatusError or ClusterError if the cluster refuses the operation."""

    def __init__(self, cluster: ScenarioCluster) -> None:
        self._cluster, self._client = cluster, cluster.client

    async def prepare(self) -> None:
        """Create the first objects, and the workload that nearly fills the nodes."""
        for each in (*first_objects(), *objects_of(BASE)):
            await self._create(each)

    async def perform(self, load: Load) -> None:
        """Perform an operation."""
        match load:
            case CreatePod() | CreateWorkload() | CreateGang():
                for each in objects_of(load):
                    await self._create(each)
            case DeletePod() | ResizePod() | Nominate():
                await self._of_pods(load)
            case ScaleWorkload() | ChangeTemplate() | EvictWorkload() | DeleteWorkload():
                await self._of_workloads(load)
            case DeleteGang():
                for name in members(load.name, load.count):
                    await self._delete(kinds.POD, name)
                await self._delete(kinds.POD_GROUP, load.name)
            case AddNode() | RemoveNode() | DrainNode() | SetPolicy():
                await self._of_nodes(load)

    async def _of_pods(self, load: OfPods) -> None:
        match load:
            case DeletePod(name=name):
                if load.volume:
                    await self._delete(kinds.PERSISTENT_VOLUME_CLAIM, name)
                await self._delete(kinds.POD, name, namespace_of(limited=load.limited))
            case ResizePod(name=name, cpu=cpu):
                resources = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
                namespace = namespace_of(limited=load.limited)
                await self._patch(kinds.POD, name, {"spec": resources}, namespace, subresource="resize")
            case Nominate():
                await self._nominate(load)

    async def _nominate(self, load: Nominate) -> None:
        listed = await self._client.list(kinds.POD)
        waiting = [
            pod
            for pod in listed.items
            if not pod.spec.nodeName and not pod.metadata.HasField("deletionTimestamp")
        ]
        pod, node = _chosen(waiting, load.pod), _chosen(await self._nodes(), load.node)
        if pod is None or node is None:
            return
        await self._try(
            lambda: self._client.patch(
                kinds.POD,
                pod.metadata.name,
                pod.metadata.namespace,
                {"status": {"nominatedNodeName": node.metadata.name}},
                patch_type=PatchType.MERGE,
                subresource="status",
            )
        )

    async def _of_workloads(self, load: OfWorkloads) -> None:
        match load:
            case ScaleWorkload(kind=kind, name=name, replicas=replicas):
                await self._patch(_KINDS[kind], name, {"spec": {"replicas": replicas}})
            case ChangeTemplate(kind=kind, name=name, cpu=cpu):
                containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
                template = {"spec": {"template": {"spec": {"containers": containers}}}}
                await self._patch(_KINDS[kind], name, template)
            case EvictWorkload(name=name):
                await self._evict(
                    (
                        await self._client.list(
                            kinds.POD, NAMESPACE, label_selector=f"{WORKLOAD_LABEL}={name}"
                        )
                    ).items
                )
            case DeleteWorkload(kind=kind, name=name):
                await self._delete(kinds.POD_DISRUPTION_BUDGET, name)
                await self._delete(_KINDS[kind], name)

    async def _of_nodes(self, load: OfNodes) -> None:
        match load:
            case AddNode():
                await self._cluster.increase_node_group(GROUP, 1)
            case RemoveNode(number=number):
                node = _chosen(await self._nodes(f"{_GROUP_LABEL}={GROUP}"), number)
                if node is not None:
                    await self._cluster.delete_nodes(GROUP, [node.metadata.name])
            case DrainNode(number=number, seconds=seconds):
                node = _chosen(await self._nodes(), number)
                if node is not None:
                    await self._drain(node.metadata.name, seconds)
            case SetPolicy(node=number, disabled=disabled):
                node = _chosen(await self._nodes(), number)
                policy = {"disableResizePreemption": ["chaos.nominee.dev"]} if disabled else None
                if node is not None:
                    await self._patch(
                        kinds.NODE, node.metadata.name, {"spec": {"podPreemptionPolicy": policy}}, ""
                    )

    async def _drain(self, node: str, seconds: float) -> None:
        """Cordon a node, evict its pods once, all at the same time, and uncordon it after a time."""
        await self._patch(kinds.NODE, node, {"spec": {"unschedulable": True}}, "")
        await self._evict((await self._client.list(kinds.POD, field_selector=f"spec.nodeName={node}")).items)
        await self._cluster.clock.sleep(seconds)
        await self.uncordon(node)

    async def uncordon(self, node: str) -> None:
        """Make a node schedulable."""
        await self._patch(kinds.NODE, node, {"spec": {"unschedulable": None}}, "")

    async def _evict(self, pods: Sequence[core.Pod]) -> None:
        async def evict(pod: core.Pod) -> None:
            with suppress(StatusError):
                await self._client.evict(pod.metadata.namespace, pod.metadata.name)

        async with anyio.create_task_group() as tasks:
            for pod in pods:
                tasks.start_soon(evict, pod)

    async def _nodes(self, selector: str = "") -> list[core.Node]:
        return list((await self._client.list(kinds.NODE, label_selector=selector)).items)

    async def _create(self, obj: Message) -> None:
        await self._try(lambda: self._client.create(obj))

    async def _delete(self, kind: AnyKind, name: str, namespace: str = NAMESPACE) -> None:
        """Delete an object; it may be gone, or its creation have been refused."""
        try:
            await self._try(lambda: self._client.delete(kind, name, namespace))
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _patch(
        self, kind: AnyKind, name: str, patch: object, namespace: str = NAMESPACE, subresource: str = ""
    ) -> None:
        await self._try(lambda: self._client.patch(kind, name, namespace, patch, subresource=subresource))

    async def _try(self, call: Callable[[], Awaitable[Message | bool]]) -> None:
        await retry_unavailable(call, clock=self._cluster.clock)


def _chosen(objects: Sequence[Chosen], number: int) -> Chosen | None:
    """Return the object that a number stands for, None if there are no objects."""
    ordered = sorted(objects, key=lambda each: (each.metadata.namespace, each.metadata.name))
    return ordered[number % len(ordered)] if ordered else None
