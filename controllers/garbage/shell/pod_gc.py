"""The pod garbage collector's shell: checks all pods periodically, and deletes those that are garbage."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.controllers.garbage.pod_gc import (
    Quarantine,
    fail,
    on_nodes,
    out_of_service,
    too_many_ended,
    unscheduled_terminating,
)
from nominee.controllers.shell.controller import Context, Runner
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, ignoring, is_conflict, is_not_found
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.watches.live_objects import get_if_exists
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.runtime.failpoints import FailpointError

MARK_BEFORE = failpoints.declare(
    "controllers.pod_gc.mark.before", "a pod is garbage; its phase is not set to Failed"
)
DELETE_BEFORE = failpoints.declare(
    "controllers.pod_gc.delete.before", "a pod is garbage, and marked if it had to be; it is not deleted"
)


class PodGarbageCollector(Runner):
    """Ends pods that no kubelet and no controller will end."""

    name = "pod-garbage-collector-controller"
    component = "pod-garbage-collector-controller"

    def __init__(
        self, context: Context, *, period_seconds: float, quarantine_seconds: float, ended_pods_max: int
    ) -> None:
        super().__init__(context)
        self.pods = context.informers.of(kinds.POD)
        self.nodes = context.informers.of(kinds.NODE)
        self._period_seconds = period_seconds
        self._ended_pods_max = ended_pods_max
        self._quarantine = Quarantine(quarantine_seconds)

    async def run(self) -> None:
        while True:
            await self._collect()
            await self.clock.sleep(self._period_seconds)

    async def _collect(self) -> None:
        pods: list[core.Pod] = self.pods.list()
        nodes = {node.metadata.name: node for node in self.nodes.list()}
        await self._end(too_many_ended(pods, self._ended_pods_max))
        await self._end(out_of_service(pods, nodes))
        named = self.pods.index_values("node")
        missing = self._quarantine.missing_nodes(named, nodes.__contains__, self.clock.monotonic())
        gone = [name for name in missing if not await self._exists(name)]
        await self._end(on_nodes(pods, gone), node_gone=True)
        await self._end(unscheduled_terminating(pods))

    async def _exists(self, node: str) -> bool:
        """Ask the API server whether a node exists: the informer may be behind. Without an answer it may."""
        try:
            return await get_if_exists(self.client, kinds.NODE, node) is not None
        except StatusError as error:
            self.log.warning("pod garbage", node=node, error=str(error))
            return True

    async def _end(self, pods: Iterable[core.Pod], *, node_gone: bool = False) -> None:
        """End pods; one that cannot be ended leaves the others alone, and has its turn in the next period."""
        for pod in pods:
            try:
                with ignoring(is_not_found, is_conflict):
                    await self._end_one(pod, node_gone=node_gone)
            except (StatusError, FailpointError) as error:
                self.log.warning("pod garbage", pod=str(key_of(pod)), error=str(error))

    async def _end_one(self, pod: core.Pod, *, node_gone: bool) -> None:
        namespace, name, uid = pod.metadata.namespace, pod.metadata.name, pod.metadata.uid
        marked = fail(pod, to_time(self.clock.now()), node_gone=node_gone)
        if marked is not None:
            await MARK_BEFORE.hit(pod=f"{namespace}/{name}")
            await self.client.update(marked, subresource="status")
        await DELETE_BEFORE.hit(pod=f"{namespace}/{name}")
        await self.client.delete(kinds.POD, name, namespace, grace_period_seconds=0, uid=uid)
