"""The stateful set controller's shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from google.protobuf.message import Message

from nominee.controllers.owned_pods.shell.pod_owner import PodOwner
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.revisions import history
from nominee.controllers.shell.controller import Context, namespace_ends
from nominee.controllers.shell.owner_references import adopt_and_release
from nominee.controllers.stateful_sets.identity import is_member, parent_and_ordinal, revision_of
from nominee.controllers.stateful_sets.rollout import Observation, Plan, Step, plan
from nominee.controllers.stateful_sets.status import recheck_seconds, status_of
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_already_exists
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import (
    ObjectKey,
    key_of,
    resource_version_number,
    resource_version_of,
)
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime import failpoints

CLAIM_AFTER = failpoints.declare(
    "controllers.stateful_set.claim.after", "a claim of a StatefulSet's pod is created; the pod is not"
)
REVISION_AFTER = failpoints.declare(
    "controllers.stateful_set.revision.after",
    "the revision of a StatefulSet's template is created or renumbered; its status does not name it",
)
DELETE_BEFORE = failpoints.declare(
    "controllers.stateful_set.delete.before", "a StatefulSet's pod is to be deleted; it is not"
)

STALE_SECONDS: Final = 1.0
"""After how long to look again whether the watches show the controller's own writes."""


class StatefulSetController(PodOwner[apps.StatefulSet]):
    """Creates, deletes and updates each stateful set's pods in the order of their ordinals."""

    name = "statefulset-controller"
    component = "statefulset-controller"
    create_before = failpoints.declare(
        "controllers.stateful_set.create.before", "a StatefulSet needs a pod; it is not created"
    )
    create_after = failpoints.declare(
        "controllers.stateful_set.create.after", "the pod is created; no event is recorded"
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context, kinds.STATEFUL_SET)
        self.revisions = context.informers.of(kinds.CONTROLLER_REVISION)
        self._written: dict[Kind[Message], dict[ObjectKey, int]] = {
            kinds.STATEFUL_SET: {},
            kinds.CONTROLLER_REVISION: {},
        }
        """The resourceVersions of the last writes for a set, by kind."""
        self.claims = context.informers.of(kinds.PERSISTENT_VOLUME_CLAIM)
        self.claims.add_handler(on_delete=lambda gone, _stale: self._claim_gone(gone))

    def _claim_gone(self, gone: core.PersistentVolumeClaim) -> None:
        """Queue the set whose pod waits until the claim of an earlier pod is gone."""
        for owner in gone.metadata.ownerReferences:
            if owner.kind == "Pod":
                name, _ = parent_and_ordinal(owner.name)
                self.queue.add(ObjectKey(gone.metadata.namespace, name))

    async def reconcile(self, key: ObjectKey) -> float | None:
        of = self.owners.get(key.name, key.namespace)
        if of is None:
            self.expectations.forget(key)
            for written in self._written.values():
                written.pop(key, None)
            return None
        if not self._sees_own_writes(key):
            return STALE_SECONDS
        revisions = await adopt_and_release(self.client, of, of.spec.selector, self.revisions, releases=False)
        pods = await adopt_and_release(
            self.client, of, of.spec.selector, self.pods, concerns=lambda pod: is_member(of, pod)
        )
        update, collisions = await self._update_revision(of, revisions)
        current = next(
            (each for each in revisions if each.metadata.name == of.status.currentRevision), update
        )
        now = self.clock.now()
        await self._sync(of, pods, current, update, collisions, now)
        await self._truncate(of, pods, revisions, current, update)
        # As of when the pods were looked at: one that became available during the writes has no event.
        return recheck_seconds(of, pods, now)

    def _sees_own_writes(self, key: ObjectKey) -> bool:
        """Report whether the watches show the writes of earlier reconciliations of a set.

        Source: StaleControllerConsistencyStatefulSet, on since 1.36; before, upstream may read older objects.
        """
        return self.satisfied(key) and all(
            resource_version_number(self.context.informers.of(kind).resource_version) >= written.get(key, 0)
            for kind, written in self._written.items()
        )

    # --- revisions ---

    async def _update_revision(
        self, of: apps.StatefulSet, revisions: Sequence[apps.ControllerRevision]
    ) -> tuple[apps.ControllerRevision, int]:
        """Create or renumber the revision of the template; return it with the count of collisions."""
        collisions = of.status.collisionCount
        while True:
            found = history.update_revision(of, revisions, collisions)
            if found.renumber:
                revision = await self.client.update(found.revision)
            elif found.create:
                try:
                    revision = await self.client.create(found.revision)
                except StatusError as error:
                    if not is_already_exists(error):
                        raise
                    name = found.revision.metadata.name
                    live = await self.client.get(kinds.CONTROLLER_REVISION, name, of.metadata.namespace)
                    if live.data.raw != found.revision.data.raw:
                        collisions += 1
                        continue
                    revision = live  # the watch is behind
            else:
                return found.revision, collisions
            self._written[kinds.CONTROLLER_REVISION][key_of(of)] = resource_version_of(revision)
            await REVISION_AFTER.hit(stateful_set=of.metadata.name)
            return revision, collisions

    async def _truncate(
        self,
        of: apps.StatefulSet,
        pods: Sequence[core.Pod],
        revisions: Sequence[apps.ControllerRevision],
        *used: apps.ControllerRevision,
    ) -> None:
        live = {each.metadata.name for each in used} | {revision_of(pod) for pod in pods}
        for each in history.to_delete(revisions, live, of.spec.revisionHistoryLimit):
            await self.delete_if_exists(each)

    # --- pods ---

    async def _sync(
        self,
        of: apps.StatefulSet,
        pods: Sequence[core.Pod],
        current: apps.ControllerRevision,
        update: apps.ControllerRevision,
        collisions: int,
        now: float,
    ) -> None:
        seen = Observation(
            of,
            pods,
            lambda name: self.claims.get(name, of.metadata.namespace),
            current,
            update,
            now,
            self.context.gates.enabled("MaxUnavailableStatefulSet"),
        )
        failure: StatusError | None = None
        try:
            await self._do(of, plan(seen))
        except StatusError as error:
            failure = error
        status = status_of(of, pods, current.metadata.name, update.metadata.name, collisions, now)
        written = await self.write_status(of, status)
        if written is not None:
            self._written[kinds.STATEFUL_SET][key_of(of)] = resource_version_of(written)
        if failure is not None:
            raise failure

    async def _do(self, of: apps.StatefulSet, work: Plan) -> None:
        for phase in work.phases:
            if work.ordered:
                for step in phase:
                    await self._perform(of, step)
            else:
                await self.in_growing_batches(phase, lambda step: self._perform(of, step))

    async def _perform(self, of: apps.StatefulSet, step: Step) -> None:
        """Write the claims of a pod, then the pod."""
        pod, verb = step.pod, step.verb
        try:
            await self._create_claims(of, step)
            for name in step.contested_claims:
                note = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a managing"
                    " controller, the retention policy is ignored for this claim"
                )
                self.record(of, PlannedEvent("ConflictingController", note, "Warning"))
            for changed in step.changed_claims:
                await self.client.update(changed)
            if verb == "update":
                await self.client.update(pod)
                self.record_pod(of, "Update", pod)
        except StatusError as error:
            if verb != "claims":
                self.record_pod(of, verb.capitalize(), pod, error)
            raise
        if verb == "create":
            await self.create_pod(of, pod)
        elif verb == "delete":
            await DELETE_BEFORE.hit(stateful_set=of.metadata.name)
            await self.delete_pod(of, pod)

    async def _create_claims(self, of: apps.StatefulSet, step: Step) -> None:
        pod = step.pod.metadata.name
        where = f"Pod {pod} in StatefulSet {of.metadata.name}"
        for new in step.new_claims:
            name = new.metadata.name
            try:
                await self.client.create(new)
            except StatusError as error:
                if namespace_ends(error):
                    return
                if is_already_exists(error) and step.verb == "claims":
                    continue  # the watch is behind
                if not is_already_exists(error):
                    note = f"create Claim {name} for {where} failed error: {error}"
                    self.record(of, PlannedEvent("FailedCreate", note, "Warning"))
                message = f"failed to create PVC {name}: {error}"
                raise StatusError(error.code, error.reason, message, details=error.details) from error
            self.record(of, PlannedEvent("SuccessfulCreate", f"create Claim {name} {where} success"))
            await CLAIM_AFTER.hit(pod=f"{of.metadata.namespace}/{pod}")
        for name in step.ending_claims:
            raise StatusError(409, "Conflict", f"pvc {name} is being deleted")

    def record_pod(
        self, owner: apps.StatefulSet, verb: str, pod: core.Pod, error: StatusError | None = None
    ) -> None:
        about = f"{verb.lower()} Pod {pod.metadata.name} in StatefulSet {owner.metadata.name}"
        if error is None:
            self.record(owner, PlannedEvent(f"Successful{verb}", f"{about} successful"))
        elif not is_already_exists(error):
            self.record(owner, PlannedEvent(f"Failed{verb}", f"{about} failed error: {error}", "Warning"))
