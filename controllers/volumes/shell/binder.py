"""The persistent volume controller's shell: claims and volumes, each with a queue of its own."""

from __future__ import annotations

from nominee.controllers.shell.controller import Context, Controller
from nominee.controllers.volumes.binding import RESYNC_SECONDS, ClaimView, next_claim_step, next_volume_step
from nominee.controllers.volumes.pod_claims import waits_with
from nominee.controllers.volumes.shell.perform import perform
from nominee.controllers.volumes.steps import RecordEvent
from nominee.machinery.api import kinds
from nominee.machinery.api.default_class import DEFAULT_STORAGE_CLASS, default_class, is_default
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core, storage
from nominee.machinery.client.watches.live_objects import get_if_exists
from nominee.machinery.scheduling.volume_matching import BIND_COMPLETED, class_of

STEPS_MAX = 8
"""Writes in a row for one claim; a whole binding takes four."""


def _volume_of_bound(claim: core.PersistentVolumeClaim) -> list[str]:
    """Return the volume of a claim whose binding was completed once, for an index."""
    return [claim.spec.volumeName] if BIND_COMPLETED in claim.metadata.annotations else []


class ClaimController(Controller):
    """Binds claims to volumes."""

    name = "persistentvolume-binder"
    component = "persistentvolume-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.claims = self.watch(kinds.PERSISTENT_VOLUME_CLAIM)
        self.claims.add_index("bound", _volume_of_bound)
        self.volumes = context.informers.of(kinds.PERSISTENT_VOLUME)
        self.classes = context.informers.of(kinds.STORAGE_CLASS)
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_index("waiting", waits_with)
        self.volumes.on_change(self._volume_changed)
        self.classes.on_change(self._class_changed, deletions=False)

    def _volume_changed(self, volume: core.PersistentVolume) -> None:
        # It may have lost its claimRef, or come again without one: the claim that has it binds it again.
        for claim in self.claims.by_index("bound", volume.metadata.name):
            self._enqueue(claim)
        if volume.spec.HasField("claimRef"):
            self.queue.add(ObjectKey(volume.spec.claimRef.namespace, volume.spec.claimRef.name))
            return
        self._unbound_of_class(class_of(volume))

    def _class_changed(self, storage_class: storage.StorageClass) -> None:
        self._unbound_of_class(storage_class.metadata.name)
        if is_default(storage_class, DEFAULT_STORAGE_CLASS):
            self._unbound_of_class("")

    def _unbound_of_class(self, name: str) -> None:
        for claim in self.claims.list():
            if not claim.spec.volumeName and class_of(claim) == name:
                self._enqueue(claim)

    def _view(self, claim: core.PersistentVolumeClaim, written: core.PersistentVolume | None) -> ClaimView:
        class_name = class_of(claim)
        candidates = [
            *self.volumes.by_index("claim", f"{claim.metadata.namespace}/{claim.metadata.name}"),
            *self.volumes.by_index("free", class_name),
        ]
        volume = self.volumes.get(claim.spec.volumeName) if claim.spec.volumeName else None
        if written is not None:
            # The watch may not have shown the last write.
            candidates = [v for v in candidates if v.metadata.name != written.metadata.name] + [written]
            if claim.spec.volumeName == written.metadata.name:
                volume = written
        default = default_class(self.classes.list(), DEFAULT_STORAGE_CLASS)
        return ClaimView(
            claim=claim,
            storage_class=self.classes.get(class_name),
            volume=volume,
            candidates=candidates,
            waiting_pods=[
                pod.metadata.name
                for pod in self.pods.by_index("waiting", f"{claim.metadata.namespace}/{claim.metadata.name}")
            ],
            default_class="" if default is None else default.metadata.name,
        )

    async def reconcile(self, key: ObjectKey) -> float | None:
        claim = self.claims.get(key.name, key.namespace)
        volume: core.PersistentVolume | None = None
        if claim is None:
            return None
        for _ in range(STEPS_MAX):
            step = next_claim_step(self._view(claim, volume))
            if step is None:
                # The volume that the claim names may be created, or become free, later.
                names_volume = claim.spec.volumeName and BIND_COMPLETED not in claim.metadata.annotations
                return RESYNC_SECONDS if names_volume else None
            written = await perform(step, self.client, self.recorder)
            if isinstance(step, RecordEvent):
                return step.again_seconds or None
            if isinstance(written, core.PersistentVolumeClaim):
                claim = written
            elif isinstance(written, core.PersistentVolume):
                volume = written
        return None


class VolumeController(Controller):
    """Keeps phases of volumes without a claim, and reclaims them."""

    name = "persistentvolume-phases"
    component = "persistentvolume-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.volumes = self.watch(kinds.PERSISTENT_VOLUME)
        self.claims = context.informers.of(kinds.PERSISTENT_VOLUME_CLAIM)
        self.claims.add_handler(
            on_update=self._claim_updated, on_delete=lambda claim, _stale: self._enqueue_volumes_of(claim)
        )

    async def _claim(self, reference: core.ObjectReference) -> core.PersistentVolumeClaim | None:
        """Return the claim of a reference; ask the API server where the informer does not have it.

        The informer may be behind: the volume of a new claim must not be deleted.
        """
        if not reference.uid:
            return None
        claim = self.claims.get(reference.name, reference.namespace)
        if claim is not None and claim.metadata.uid == reference.uid:
            return claim
        kind = kinds.PERSISTENT_VOLUME_CLAIM
        return await get_if_exists(self.client, kind, reference.name, reference.namespace)

    def _claim_updated(self, old: core.PersistentVolumeClaim, new: core.PersistentVolumeClaim) -> None:
        """Look at the other volumes of a claim that has got one."""
        if new.spec.volumeName and not old.spec.volumeName:
            self._enqueue_volumes_of(new)

    def _enqueue_volumes_of(self, claim: core.PersistentVolumeClaim) -> None:
        """Look at the volume of a claim, also at one that is bound while the claim does not name it yet."""
        if claim.spec.volumeName:
            self.queue.add(ObjectKey("", claim.spec.volumeName))
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        for volume in self.volumes.by_index("claim", key):
            self._enqueue(volume)

    async def reconcile(self, key: ObjectKey) -> float | None:
        volume = self.volumes.get(key.name)
        for _ in range(STEPS_MAX):
            if volume is None:
                return None
            reference = volume.spec.claimRef
            step = next_volume_step(volume, await self._claim(reference))
            if step is None:
                return None
            written = await perform(step, self.client, self.recorder)
            volume = written if isinstance(written, core.PersistentVolume) else None
        return None
