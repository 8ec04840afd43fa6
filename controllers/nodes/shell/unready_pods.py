"""Pods of nodes that are not ready become not ready: their kubelet cannot say so."""

from __future__ import annotations

from nominee.controllers.nodes.health import unready_pod
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Worker
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime.clock import to_time


class UnreadyPods(Worker[ObjectKey]):
    """Sets pods to Ready=False: all of a node that becomes Unknown, and those that it gets meanwhile.

    Source: kube-controller-manager 1.36, MarkPodsNotReady, podUpdated and processPod.
    """

    name = "node-lifecycle-controller-pods"
    component = "node-controller"

    def __init__(self, context: Context, pods_by_node: Informer[core.Pod]) -> None:
        super().__init__(context)
        self.ready: dict[str, str] = {}
        """The status of the condition Ready of each node, as the last look at it left it.

        No node is known to a controller that starts: it leaves the pods that it finds as they are."""
        self._pods = pods_by_node
        self._pods.add_handler(on_add=self._assigned, on_update=self._updated)

    def _assigned(self, pod: core.Pod) -> None:
        if self._is_unready(pod.spec.nodeName):
            self.queue.add(key_of(pod))

    def _updated(self, old: core.Pod, new: core.Pod) -> None:
        if old.spec.nodeName != new.spec.nodeName:
            self._assigned(new)

    def _is_unready(self, node: str) -> bool:
        return self.ready.get(node, "") in ("False", "Unknown")

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod = self._pods.get(key.name, key.namespace)
        if pod is not None and self._is_unready(pod.spec.nodeName):
            await self._mark(pod)
        return None

    async def mark_all(self, node: str) -> None:
        """Set the pods of a node to Ready=False."""
        for pod in self._pods.by_index("node", node):
            await self._mark(pod)

    async def _mark(self, pod: core.Pod) -> None:
        unready = unready_pod(pod, to_time(self.clock.now()))
        if unready is None:
            return
        try:
            await self.client.update(unready, subresource="status")
        except StatusError as error:
            if is_not_found(error):
                return
            raise
        self.record(pod, PlannedEvent("NodeNotReady", "Node is not ready", "Warning"))
