"""Eviction by NoExecute taints: deletes pods that do not tolerate them, or after tolerationSeconds."""

from __future__ import annotations

from nominee.controllers.nodes.eviction import seconds_to_live
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller
from nominee.controllers.shell.disruption_target import disrupt
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import to_time

EVICT_BEFORE = failpoints.declare(
    "controllers.taint_eviction.before", "a pod must leave a tainted node; it is neither marked nor deleted"
)


class TaintEviction(Controller):
    """Deletes pods from nodes whose NoExecute taints they do not, or no longer, tolerate.

    tolerationSeconds counts from when this process first saw the pod on the tainted node; a taint or a
    toleration that comes later changes nothing then, unless the pod may stay for ever or must leave at once.
    Pods that have ended are deleted, too.
    """

    name = "taint-eviction-controller"
    component = "taint-eviction-controller"

    def __init__(self, context: Context, pods_by_node: Informer[core.Pod]) -> None:
        super().__init__(context)
        self.pods = pods_by_node
        self._comparison = context.gates.enabled("TaintTolerationComparisonOperators")
        self.nodes = context.informers.of(kinds.NODE)
        self._due: dict[str, float] = {}  # pod uid -> monotonic seconds
        self.pods.on_change(self._pod_changed, deletions=False)
        self.pods.add_handler(on_delete=lambda pod, _stale: self._pod_gone(pod))
        self.nodes.add_handler(on_add=self._node_changed, on_update=self._node_updated)

    def _pod_changed(self, pod: core.Pod) -> None:
        if pod.spec.nodeName:
            self._enqueue(pod)

    def _pod_gone(self, pod: core.Pod) -> None:
        self._due.pop(pod.metadata.uid, None)

    def _node_updated(self, old: core.Node, new: core.Node) -> None:
        if old.spec.taints != new.spec.taints:
            self._node_changed(new)

    def _node_changed(self, node: core.Node) -> None:
        for pod in self.pods.by_index("node", node.metadata.name):
            self._enqueue(pod)

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod = self.pods.get(key.name, key.namespace)
        if pod is None:
            return None
        if is_terminating(pod):
            self._due.pop(pod.metadata.uid, None)  # it may terminate for long where its kubelet is gone
            return None
        node = self.nodes.get(pod.spec.nodeName)
        taints = node.spec.taints if node is not None else ()
        seconds = seconds_to_live(pod, taints, comparison=self._comparison)
        uid, now = pod.metadata.uid, self.clock.monotonic()
        if seconds is None:
            if self._due.pop(uid, None) is not None:
                self._record_eviction(pod, "Cancelling deletion of Pod")
            return None
        if seconds > 0:
            remaining = self._due.setdefault(uid, now + seconds) - now
            if remaining > 0:
                return remaining
        await self._evict(pod)
        self._due.pop(uid, None)
        return None

    def _record_eviction(self, pod: core.Pod, action: str) -> None:
        namespace, name = pod.metadata.namespace, pod.metadata.name
        # Upstream's reference has neither uid nor resourceVersion.
        reference = core.ObjectReference(kind="Pod", apiVersion="v1", namespace=namespace, name=name)
        note = f"{action} {namespace}/{name}"
        self.record(reference, PlannedEvent("TaintManagerEviction", note))

    async def _evict(self, pod: core.Pod) -> None:
        await EVICT_BEFORE.hit(pod=f"{pod.metadata.namespace}/{pod.metadata.name}")
        self._record_eviction(pod, "Marking for deletion Pod")
        now = to_time(self.clock.now())
        message = "Taint manager: deleting due to NoExecute taint"
        await disrupt(self.client, pod, now, reason="DeletionByTaintManager", message=message)
