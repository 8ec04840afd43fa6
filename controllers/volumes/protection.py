"""Protection of what is in use: a claim goes when no pod uses it, a volume when it is not bound.

Source: kube-controller-manager 1.36, pvc-protection-controller and pv-protection-controller.
"""

from __future__ import annotations

from typing import Any

from controllers.controller import Context, Controller
from controllers.volumes import annotations as names
from controllers.volumes.claims import claims_of
from machinery.api import kinds
from machinery.api.objects import ObjectKey, is_terminating
from machinery.api.pb import core


def uses(pod: core.Pod, claim: core.PersistentVolumeClaim) -> bool:
    """Whether the pod keeps the claim alive: it is on a node and has not ended."""
    return (
        pod.metadata.namespace == claim.metadata.namespace
        and bool(pod.spec.nodeName)
        and pod.status.phase not in ("Succeeded", "Failed")
        and claim.metadata.name in claims_of(pod)
    )


def without_finalizer(obj: Any, finalizer: str) -> Any:
    """A copy without the finalizer, or None where it has none."""
    if finalizer not in obj.metadata.finalizers:
        return None
    new = type(obj)()
    new.CopyFrom(obj)
    new.metadata.finalizers.remove(finalizer)
    return new


class ClaimProtection(Controller):
    """Takes the finalizer from claims that are being deleted and that no pod uses."""

    name = "pvc-protection"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.claims = self.watch(kinds.PERSISTENT_VOLUME_CLAIM)
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_handler(
            on_update=lambda _old, new: self._pod_changed(new),
            on_delete=lambda pod, _stale: self._pod_changed(pod),
        )

    def _pod_changed(self, pod: core.Pod) -> None:
        for name in claims_of(pod):
            self.queue.add(ObjectKey(pod.metadata.namespace, name))

    async def reconcile(self, key: ObjectKey) -> float | None:
        claim = self.claims.get(key.name, key.namespace)
        if claim is None or not is_terminating(claim):
            return None
        if any(uses(pod, claim) for pod in self.pods.list(key.namespace)):
            return None
        freed = without_finalizer(claim, names.PVC_PROTECTION)
        if freed is not None:
            await self.client.update(freed)
        return None


class VolumeProtection(Controller):
    """Takes the finalizer from volumes that are being deleted and are not bound."""

    name = "pv-protection"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.volumes = self.watch(kinds.PERSISTENT_VOLUME)

    async def reconcile(self, key: ObjectKey) -> float | None:
        volume = self.volumes.get(key.name)
        if volume is None or not is_terminating(volume) or volume.status.phase == "Bound":
            return None
        freed = without_finalizer(volume, names.PV_PROTECTION)
        if freed is not None:
            await self.client.update(freed)
        return None
