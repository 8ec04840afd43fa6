"""Eviction by NoExecute taints: deletes pods that do not tolerate them, or after tolerationSeconds."""

from __future__ import annotations

from nominee.controllers.nodes.eviction import seconds_to_live
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller
from nominee.controllers.shell.disruption_target import disrupt
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.scheduling.taints import NO_EXECUTE

EVICT_BEFORE = failpoints.declare(
    "controllers.taint_eviction.before", "a pod must leave a tainted node; it is neither marked nor deleted"
)


def _no_execute(node: core.Node) -> list[core.Taint]:
    return [taint for taint in node.spec.taints if taint.effect == NO_EXECUTE]


class TaintEviction(Controller):
    """Deletes pods from nodes whose NoExecute taints they do not, or no longer, tolerate.

    tolerationSeconds counts from when this process first saw the pod on the tainted node; a taint or a
    toleration that comes later changes nothing then, unless the pod may stay for ever or must leave at once.
    Pods that have ended or terminate are deleted, too; a pod is deleted again only after its tolerations or
    its node's NoExecute taints have changed. Source: handlePodUpdate, handleNodeUpdate, processPodOnNode.
    """

    name = "taint-eviction-controller"
    component = "taint-eviction-controller"

    def __init__(self, context: Context, pods_by_node: Informer[core.Pod]) -> None:
        super().__init__(context)
        self.pods = pods_by_node
        self._comparison = context.gates.enabled("TaintTolerationComparisonOperators")
        self.nodes = context.informers.of(kinds.NODE)
        self._due: dict[str, float] = {}  # pod uid -> monotonic seconds
        self._evicted: set[str] = set()  # uids of pods that are there still
        self.pods.add_handler(
            on_add=self._pod_changed,
            on_update=self._pod_updated,
            on_delete=lambda pod, _stale: self._pod_gone(pod),
        )
        self.nodes.add_handler(on_add=self._node_changed, on_update=self._node_updated)

    def _pod_changed(self, pod: core.Pod) -> None:
        if pod.spec.nodeName:
            self._evicted.discard(pod.metadata.uid)
            self._enqueue(pod)

    def _pod_updated(self, old: core.Pod, new: core.Pod) -> None:
        if old.spec.nodeName != new.spec.nodeName or old.spec.tolerations != new.spec.tolerations:
            self._pod_changed(new)

    def _pod_gone(self, pod: core.Pod) -> None:
        self._cancel(pod)
        self._evicted.discard(pod.metadata.uid)

    def _node_updated(self, old: core.Node, new: core.Node) -> None:
        if _no_execute(old) != _no_execute(new):
            self._node_changed(new)

    def _node_changed(self, node: core.Node) -> None:
        for pod in self.pods.by_index("node", node.metadata.name):
            self._pod_changed(pod)

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod = self.pods.get(key.name, key.namespace)
        if pod is None or pod.metadata.uid in self._evicted:
            return None
        uid, now = pod.metadata.uid, self.clock.monotonic()
        node = self.nodes.get(pod.spec.nodeName)
        if node is None:
            if uid not in self._due:
                return None
            seconds: float | None = self._due[uid] - now  # The end of the Node cancels nothing.
        else:
            seconds = seconds_to_live(pod, node.spec.taints, comparison=self._comparison)
        if seconds is None:
            self._cancel(pod)
            return None
        if seconds > 0:
            remaining = self._due.setdefault(uid, now + seconds) - now
            if remaining > 0:
                return remaining
        else:
            self._cancel(pod)
        await self._evict(pod)
        self._due.pop(uid, None)
        left = self.pods.get(key.name, key.namespace)
        if left is not None and left.metadata.uid == uid:
            self._evicted.add(uid)
        return None

    def _cancel(self, pod: core.Pod) -> None:
        """Forget a scheduled eviction, and record that if its time has not come (cancelWorkWithEvent)."""
        due = self._due.pop(pod.metadata.uid, None)
        if due is not None and due > self.clock.monotonic():
            self._record_eviction(pod, "Cancelling deletion of Pod")

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
