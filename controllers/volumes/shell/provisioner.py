"""The shell of the provisioner `delayed.nominee.dev`: waits, creates volumes, and gives claims back."""

from __future__ import annotations

from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller
from nominee.controllers.volumes import annotations as names
from nominee.controllers.volumes.attempts import Attempts
from nominee.controllers.volumes.provisioning import GiveUp, Nothing, Provision, Refuse, decide, volume_name
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import ignoring, is_already_exists
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core, storage
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff
from nominee.machinery.scheduling.volume_matching import SELECTED_NODE, class_of

BEFORE = failpoints.declare(
    "controllers.provision.before",
    "a claim needs a volume; its provisioning, with the class's delay, has not begun",
)
DURING = failpoints.declare("controllers.provision.during", "the delay is over; the volume is not created")
AFTER = failpoints.declare("controllers.provision.after", "the volume is created; the claim is not bound")

RETRY_SECONDS = 1.0
REFUSED = ExponentialBackoff(1.0, 300.0)
"""How long a refused claim waits (external-provisioner's --retry-interval-start, --retry-interval-max)."""


class Provisioner(Controller):
    """Creates a volume for each claim of a `delayed.nominee.dev` class, after the class's delay."""

    name = "provisioner"
    component = names.DELAYED_PROVISIONER

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.claims = self.watch(kinds.PERSISTENT_VOLUME_CLAIM)
        self.claims.add_handler(on_delete=lambda claim, _stale: self._claim_gone(claim))
        self.volumes = context.informers.of(kinds.PERSISTENT_VOLUME)
        self.volumes.add_handler(on_delete=lambda volume, _stale: self._volume_gone(volume))
        self.classes = context.informers.of(kinds.STORAGE_CLASS)
        self.classes.on_change(self._class_changed, deletions=False)
        self.nodes = context.informers.of(kinds.NODE)
        self.nodes.add_handler(on_delete=lambda node, _stale: self._node_gone(node))
        self._attempts = Attempts()
        self._refusals: dict[str, int] = {}  # by the claim's uid

    def _class_changed(self, storage_class: storage.StorageClass) -> None:
        """Queue the claims of a class; upstream retries those whose class does not exist."""
        for claim in self.claims.list():
            if class_of(claim) == storage_class.metadata.name and not claim.spec.volumeName:
                self._enqueue(claim)

    def _claim_gone(self, claim: core.PersistentVolumeClaim) -> None:
        self._refusals.pop(claim.metadata.uid, None)

    def _node_gone(self, node: core.Node) -> None:
        for claim in self.claims.list():
            if claim.metadata.annotations.get(SELECTED_NODE) == node.metadata.name:
                self._enqueue(claim)

    def _volume_gone(self, volume: core.PersistentVolume) -> None:
        """Queue the claim of a volume: if it was not bound yet, it needs another one."""
        if volume.spec.HasField("claimRef"):
            reference = volume.spec.claimRef
            self.queue.add(ObjectKey(reference.namespace, reference.name))

    async def reconcile(self, key: ObjectKey) -> float | None:
        claim = self.claims.get(key.name, key.namespace)
        if claim is None:
            self._attempts.forget(key)
            return None
        selected = claim.metadata.annotations.get(SELECTED_NODE, "")
        decision = decide(
            claim,
            self.classes.get(class_of(claim)),
            self.nodes.get(selected) if selected else None,
            volume_exists=self.volumes.get(volume_name(claim)) is not None,
        )
        uid = claim.metadata.uid
        if not isinstance(decision, Refuse):
            self._refusals.pop(uid, None)
        match decision:
            case Nothing():
                if claim.spec.volumeName:
                    self._attempts.forget(key)
                else:
                    self._attempts.end(key, claim.metadata.uid)
                return None
            case Refuse(note):
                self._warn(claim, note)
                self._refusals[uid] = self._refusals.get(uid, 0) + 1
                return REFUSED.delay(self._refusals[uid])
            case GiveUp(given_back, note):
                self._attempts.forget(key)
                self._warn(claim, note)
                await self.client.update(given_back)
                return None
            case Provision() as provision:
                return await self._provision(claim, provision)

    def _warn(self, claim: core.PersistentVolumeClaim, note: str) -> None:
        self.record(claim, PlannedEvent("ProvisioningFailed", note, "Warning"))

    async def _provision(self, claim: core.PersistentVolumeClaim, work: Provision) -> float | None:
        key, now = key_of(claim), self.clock.monotonic()
        attempt = self._attempts.of(key, claim.metadata.uid)
        if attempt.began is None:
            await BEFORE.hit(claim=f"{claim.metadata.namespace}/{claim.metadata.name}")
            attempt.began = now
            note = (
                f'External provisioner is provisioning volume for claim "{claim.metadata.namespace}/'
                f'{claim.metadata.name}"'
            )
            self.record(claim, PlannedEvent("Provisioning", note))
        remaining = attempt.remaining_seconds(work.parameters.delay_seconds, now)
        if remaining > 0:
            return remaining
        await DURING.hit(claim=f"{claim.metadata.namespace}/{claim.metadata.name}")
        number = attempt.fail(work.parameters.failures)
        if number is not None:
            self._warn(
                claim,
                f'failed to provision volume with StorageClass "{class_of(claim)}": the class asks for '
                f"{work.parameters.failures} failures, this was number {number}",
            )
            return RETRY_SECONDS
        with ignoring(is_already_exists):
            await self.client.create(work.volume)
        self._attempts.forget(key)
        await AFTER.hit(claim=f"{claim.metadata.namespace}/{claim.metadata.name}")
        note = f"Successfully provisioned volume {work.volume.metadata.name}"
        self.record(claim, PlannedEvent("ProvisioningSucceeded", note))
        return None
