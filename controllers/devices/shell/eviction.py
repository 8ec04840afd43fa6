"""Eviction by the taints of devices: pods that use a device with a NoExecute taint end.

They end at once, or when their claim's toleration ends (`taints`). A taint without a time (the API server
sets it) counts from when this process first saw it. Source: kube-controller-manager 1.36,
device-taint-eviction-controller (KEP-5055); DeviceTaintRules are not supported.
"""

from __future__ import annotations

from cachetools import FIFOCache

from nominee.controllers.devices import reservations, taints, templates
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller
from nominee.controllers.shell.disruption_target import disrupt
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core, devices
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import to_time

EVICT_BEFORE = failpoints.declare(
    "controllers.device_taint_eviction.before",
    "a pod must leave a tainted device; it is neither marked nor deleted",
)
FIRST_SEEN_MAX = 10_000
"""Limit of the recorded times at which taints without a time were first seen."""


class DeviceTaintEviction(Controller):
    """A key is a pod that uses claims."""

    name = "device-taint-eviction-controller"
    component = "device-taint-eviction"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.informers.of(kinds.POD)
        self.claims = context.informers.of(kinds.RESOURCE_CLAIM)
        self.slices = context.informers.of(kinds.RESOURCE_SLICE)
        self._tainted: taints.Taints = {}
        self._is_stale = True  # slices have changed since `_tainted` was computed
        self._first_seen: FIFOCache[tuple[taints.Device, str, str], float] = FIFOCache(FIRST_SEEN_MAX)
        self._waiting: set[str] = set()  # uids of pods that will be evicted later
        self._evicted: set[str] = set()  # uids of pods whose deletion the watch has not shown yet
        if not context.gates.enabled("DRADeviceTaints"):
            return
        self.pods.on_change(self._pod_changed, deletions=False)
        self.pods.add_handler(on_delete=lambda pod, _stale: self._pod_gone(pod))
        self.claims.add_handler(
            on_add=self._claim_changed,
            on_update=self._claim_updated,
            on_delete=lambda claim, _stale: self._claim_changed(claim),
        )
        self.slices.add_handler(
            on_add=lambda new: self._slices_changed(new),
            on_update=self._slices_changed,
            on_delete=lambda old, _stale: self._slices_changed(old, gone=True),
        )

    def _pod_changed(self, pod: core.Pod) -> None:
        if pod.spec.nodeName and templates.claim_names(pod):
            self._enqueue(pod)

    def _pod_gone(self, pod: core.Pod) -> None:
        self._waiting.discard(pod.metadata.uid)
        self._evicted.discard(pod.metadata.uid)

    def _claim_updated(self, old: devices.ResourceClaim, new: devices.ResourceClaim) -> None:
        self._claim_changed(old)
        self._claim_changed(new)

    def _claim_changed(self, claim: devices.ResourceClaim) -> None:
        for consumer in claim.status.reservedFor:
            if consumer.resource == "pods" and not consumer.apiGroup:
                self.queue.add(ObjectKey(claim.metadata.namespace, consumer.name))

    def _slices_changed(self, *versions: devices.ResourceSlice, gone: bool = False) -> None:
        """Queue the users of a pool whose devices may have other taints now.

        A new generation hides the slices of older ones; its deletion may show them again.
        """
        self._is_stale = True
        pools = {(each.spec.driver, each.spec.pool.name) for each in versions}
        was_tainted = any((driver, pool) in pools for driver, pool, _ in self._tainted)
        if not gone and not was_tainted and not any(map(taints.executes, versions)):
            return
        for claim in self.claims.list():
            if any((r.driver, r.pool) in pools for r in claim.status.allocation.devices.results):
                self._claim_changed(claim)

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod = self.pods.get(key.name, key.namespace)
        if pod is None or not pod.spec.nodeName:
            return None
        if pod.metadata.HasField("deletionTimestamp"):
            self._pod_gone(pod)  # it may terminate for long where its kubelet is gone
            return None
        uid = pod.metadata.uid
        ends = None if uid in self._evicted else self._ends_at(pod)
        if ends is None:
            if uid in self._waiting:
                self._waiting.discard(uid)
                self._record_eviction(pod, "Cancelling deletion")
            return None
        left = ends - self.clock.now()
        if left > 0:
            self._waiting.add(uid)
            return left
        await self._evict(pod)
        self._waiting.discard(uid)
        shown = self.pods.get(key.name, key.namespace)
        if shown is not None and shown.metadata.uid == uid:  # else the watch has shown its deletion
            self._evicted.add(uid)
        return None

    def _ends_at(self, pod: core.Pod) -> float | None:
        """Return when the pod must end, the earliest time of its claims.

        The claim for extended resources is not looked at (kubernetes/kubernetes#141290).
        """
        if self._is_stale:
            self._tainted, self._is_stale = taints.executing(self.slices.list()), False
        if not self._tainted:
            return None
        times = []
        for name in templates.requested_claim_names(pod):
            claim = self.claims.get(name, pod.metadata.namespace)
            if claim is not None and reservations.is_used_by(claim, pod):
                times.append(taints.ends_at(claim, self._tainted, self._first_seen_at))
        return min((time for time in times if time is not None), default=None)

    def _first_seen_at(self, device: taints.Device, taint: devices.DeviceTaint) -> float:
        key = device, taint.key, taint.value
        return self._first_seen.setdefault(key, self.clock.now())

    def _record_eviction(self, pod: core.Pod, note: str) -> None:
        namespace, name, uid = pod.metadata.namespace, pod.metadata.name, pod.metadata.uid
        reference = core.ObjectReference(kind="Pod", apiVersion="v1", namespace=namespace, name=name, uid=uid)
        self.record(reference, PlannedEvent("DeviceTaintManagerEviction", note))

    async def _evict(self, pod: core.Pod) -> None:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        await EVICT_BEFORE.hit(pod=key)
        self._record_eviction(pod, "Marking for deletion")
        now = to_time(self.clock.now())
        message = "Device Taint manager: deleting due to NoExecute taint"
        await disrupt(self.client, pod, now, reason="DeletionByDeviceTaintManager", message=message)
