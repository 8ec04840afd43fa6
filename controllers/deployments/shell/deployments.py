"""The deployment controller's shell."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.controllers.deployments import progress, rollout
from nominee.controllers.deployments.rollout import (
    Action,
    CreateSet,
    DeleteSet,
    UpdateDeployment,
    UpdateSet,
)
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import Context, Controller, controller_key, namespace_ends
from nominee.controllers.shell.owner_references import adopt_and_release
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_already_exists
from nominee.machinery.api.objects import ObjectKey, has_ended
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime import failpoints

CREATE_BEFORE = failpoints.declare(
    "controllers.deployment.create.before", "a Deployment needs a new ReplicaSet; it is not created"
)
CREATE_AFTER = failpoints.declare(
    "controllers.deployment.create.after", "the new ReplicaSet is created; no event is recorded"
)
SCALE_AFTER = failpoints.declare(
    "controllers.deployment.scale.after",
    "a ReplicaSet is updated (its size or annotations); no event is recorded",
)


class DeploymentController(Controller):
    """Roll out each deployment's template over replica sets."""

    name = "deployment-controller"
    component = "deployment-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.deployments = self.watch(kinds.DEPLOYMENT)
        self.sets = context.informers.of(kinds.REPLICA_SET)
        self.sets.add_handler(
            on_add=self._set_seen,
            on_update=self._set_updated,
            on_delete=lambda each, _stale: self._set_seen(each),
        )
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_handler(
            on_update=lambda _old, pod: self._pod_ended(pod) if has_ended(pod) else None,
            on_delete=lambda pod, _stale: self._pod_ended(pod),
        )
        self._terminating = context.gates.enabled("DeploymentReplicaSetTerminatingReplicas")

    # --- events of replica sets and pods ---

    def _set_seen(self, each: apps.ReplicaSet) -> None:
        self.enqueue_owner(each, self.deployments, lambda deployment: deployment.spec.selector)

    def _set_updated(self, old: apps.ReplicaSet, new: apps.ReplicaSet) -> None:
        before = controller_key(old, kinds.DEPLOYMENT)
        if before is not None and before != controller_key(new, kinds.DEPLOYMENT):
            self.queue.add(before)
        self._set_seen(new)

    def _pod_ended(self, pod: core.Pod) -> None:
        """Queue a Recreate deployment, which waits for its last old pod."""
        key = controller_key(pod, kinds.REPLICA_SET)
        replica_set = self.sets.get_by_key(key) if key is not None else None
        key = controller_key(replica_set, kinds.DEPLOYMENT) if replica_set is not None else None
        deployment = self.deployments.get_by_key(key) if key is not None else None
        if deployment is not None and deployment.spec.strategy.type == "Recreate":
            self._enqueue(deployment)

    # --- reconciliation ---

    async def reconcile(self, key: ObjectKey) -> float | None:
        deployment = self.deployments.get(key.name, key.namespace)
        if deployment is None:
            return None
        owned = await adopt_and_release(self.client, deployment, deployment.spec.selector, self.sets)
        outcome = rollout.sync(
            deployment,
            owned,
            running=self._running(owned),
            now=self.clock.now(),
            terminating=self._terminating,
        )
        if await self._do(deployment, outcome.actions) and outcome.status is not None:
            await self.client.update(outcome.status, subresource="status")
        return outcome.again

    def _running(self, owned: Sequence[apps.ReplicaSet]) -> frozenset[str]:
        return frozenset(
            each.metadata.uid
            for each in owned
            if any(not has_ended(pod) for pod in self.pods.by_index("owner", each.metadata.uid))
        )

    async def _do(self, deployment: apps.Deployment, actions: Sequence[Action]) -> bool:
        """Perform the actions in order; return False when the outcome's status must not be written."""
        versions: dict[str, str] = {}
        for action in actions:
            match action:
                case CreateSet(replica_set, event):
                    if not await self._create(deployment, replica_set, event):
                        return False
                case UpdateSet(replica_set, event):
                    name = replica_set.metadata.name
                    replica_set.metadata.resourceVersion = versions.get(
                        name, replica_set.metadata.resourceVersion
                    )
                    written = await self.client.update(replica_set)
                    versions[name] = written.metadata.resourceVersion
                    await SCALE_AFTER.hit(deployment=deployment.metadata.name)
                    self.record(deployment, event)
                case DeleteSet(replica_set):
                    await self.delete_if_exists(replica_set)
                case UpdateDeployment(changed):
                    await self.client.update(changed)
                case PlannedEvent():
                    self.record(deployment, action)
        return True

    async def _create(
        self, deployment: apps.Deployment, made: apps.ReplicaSet, event: PlannedEvent | None
    ) -> bool:
        """Create the new replica set; return False when its name is taken, which the status then counts."""
        await CREATE_BEFORE.hit(deployment=deployment.metadata.name)
        try:
            await self.client.create(made)
        except StatusError as error:
            if is_already_exists(error):
                return await self._exists(deployment, made)
            if namespace_ends(error):
                return False
            note = f'Failed to create new replica set "{made.metadata.name}": {error}'
            self.record(deployment, PlannedEvent(progress.CREATE_ERROR, note, "Warning"))
            failed = rollout.create_failed(deployment, note, self.clock.now())
            await self.write_status(deployment, failed.status)
            raise
        await CREATE_AFTER.hit(deployment=deployment.metadata.name)
        self.record(deployment, event)
        return True

    async def _exists(self, deployment: apps.Deployment, made: apps.ReplicaSet) -> bool:
        """Count a collision, unless the live set is the deployment's own and the watch is behind."""
        live = await self.client.get(kinds.REPLICA_SET, made.metadata.name, made.metadata.namespace)
        if not rollout.is_own(deployment, live):
            await self.client.update(rollout.count_collision(deployment), subresource="status")
        return False
