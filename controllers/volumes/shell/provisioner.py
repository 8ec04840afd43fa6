"""The shell of the provisioner `delayed.nominee.dev`: waits, creates volumes, and gives claims back."""

from __future__ import annotations

from controllers.shell.controller import Context, Controller
from controllers.volumes import annotations as names
from controllers.volumes.provisioning import GiveUp, Nothing, Provision, Refuse, decide, volume_name
from machinery.api import kinds
from machinery.api.errors import StatusError, is_already_exists
from machinery.api.objects import ObjectKey
from machinery.api.pb import core
from machinery.runtime import failpoints
from machinery.scheduling.volume_matching import SELECTED_NODE, class_of

BEFORE = failpoints.declare("controllers.provision.before")
DURING = failpoints.declare("controllers.provision.during")
AFTER = failpoints.declare("controllers.provision.after")

RETRY_SECONDS = 1.0


class Provisioner(Controller):
    """Creates a volume for each claim of a `delayed.nominee.dev` class, after the class's delay."""

    name = "provisioner"
    component = names.DELAYED_PROVISIONER

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.claims = self.watch(kinds.PERSISTENT_VOLUME_CLAIM)
        self.volumes = context.informers.of(kinds.PERSISTENT_VOLUME)
        self.classes = context.informers.of(kinds.STORAGE_CLASS)
        self.nodes = context.informers.of(kinds.NODE)
        self.nodes.add_handler(on_delete=lambda node, _stale: self._node_gone(node))
        self._began: dict[str, float] = {}  # claim uid -> monotonic seconds; entries leave with their claims
        self._failed: dict[str, int] = {}

    def _node_gone(self, node: core.Node) -> None:
        for claim in self.claims.list():
            if claim.metadata.annotations.get(SELECTED_NODE) == node.metadata.name:
                self._enqueue(claim)

    def _forget_work(self, uid: str) -> None:
        self._began.pop(uid, None)
        self._failed.pop(uid, None)

    def _forget_deleted(self) -> None:
        """Drop the state of deleted claims; a key has no uid."""
        if not self._began and not self._failed:
            return
        living = {claim.metadata.uid for claim in self.claims.list()}
        for uid in [uid for uid in {**self._began, **self._failed} if uid not in living]:
            self._forget_work(uid)

    async def reconcile(self, key: ObjectKey) -> float | None:
        claim = self.claims.get(key.name, key.namespace)
        if claim is None:
            self._forget_deleted()
            return None
        selected = claim.metadata.annotations.get(SELECTED_NODE, "")
        decision = decide(
            claim,
            self.classes.get(class_of(claim)),
            self.nodes.get(selected) if selected else None,
            volume_exists=self.volumes.get(volume_name(claim)) is not None,
        )
        match decision:
            case Nothing():
                self._began.pop(claim.metadata.uid, None)
                return None
            case Refuse(note):
                self._warn(claim, note)
                return None
            case GiveUp(given_back, note):
                self._forget_work(claim.metadata.uid)
                self._warn(claim, note)
                await self.client.update(given_back)
                return None
            case Provision() as provision:
                return await self._provision(claim, provision)

    def _warn(self, claim: core.PersistentVolumeClaim, note: str) -> None:
        self.recorder.event(claim, "Warning", "ProvisioningFailed", action="", note=note)

    async def _provision(self, claim: core.PersistentVolumeClaim, work: Provision) -> float | None:
        uid, now = claim.metadata.uid, self.clock.monotonic()
        if uid not in self._began:
            await BEFORE.hit(claim=f"{claim.metadata.namespace}/{claim.metadata.name}")
            self._began[uid] = now
            note = (
                f'External provisioner is provisioning volume for claim "{claim.metadata.namespace}/'
                f'{claim.metadata.name}"'
            )
            self.recorder.event(claim, "Normal", "Provisioning", action="", note=note)
        remaining = self._began[uid] + work.parameters.delay_seconds - now
        if remaining > 0:
            return remaining
        await DURING.hit(claim=f"{claim.metadata.namespace}/{claim.metadata.name}")
        failed = self._failed.get(uid, 0)
        if failed < work.parameters.failures:
            self._failed[uid] = failed + 1
            del self._began[uid]
            self._warn(
                claim,
                f'failed to provision volume with StorageClass "{class_of(claim)}": the class asks for '
                f"{work.parameters.failures} failures, this was number {failed + 1}",
            )
            return RETRY_SECONDS
        try:
            await self.client.create(work.volume)
        except StatusError as error:
            if not is_already_exists(error):
                raise
        self._forget_work(uid)
        await AFTER.hit(claim=f"{claim.metadata.namespace}/{claim.metadata.name}")
        note = f"Successfully provisioned volume {work.volume.metadata.name}"
        self.recorder.event(claim, "Normal", "ProvisioningSucceeded", action="", note=note)
        return None
