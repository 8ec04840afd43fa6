"""Protection of volumes in use: a claim goes when no pod on a node has it, a volume when it is not bound.

Source: kube-controller-manager 1.36, pvc-protection-controller and pv-protection-controller.
"""

from __future__ import annotations

from nominee.controllers.shell.controller import UNSEEN_SECONDS, Context, Controller
from nominee.controllers.volumes import annotations as names
from nominee.controllers.volumes.pod_claims import uses
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.api.volume_claims import claims_of


class ClaimProtection(Controller):
    """Removes the finalizer from claims that are being deleted and that no pod uses."""

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
        # A pod that the cache does not have yet may use it: the newest state decides.
        if any(uses(pod, claim) for pod in (await self.client.list(kinds.POD, key.namespace)).items):
            return UNSEEN_SECONDS
        await self.drop_finalizer(claim, names.PVC_PROTECTION)
        return None


class VolumeProtection(Controller):
    """Removes the finalizer from volumes that are being deleted and are not bound."""

    name = "pv-protection"
    workers = 1

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.volumes = self.watch(kinds.PERSISTENT_VOLUME)

    async def reconcile(self, key: ObjectKey) -> float | None:
        volume = self.volumes.get(key.name)
        if volume is None or not is_terminating(volume) or volume.status.phase == "Bound":
            return None
        await self.drop_finalizer(volume, names.PV_PROTECTION)
        return None
