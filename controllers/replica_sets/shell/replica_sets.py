"""The shell of the replica set controller, and of the replication controller, which adapts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from nominee.controllers.owned_pods.readiness import is_active
from nominee.controllers.owned_pods.shell.pod_owner import PodOwner
from nominee.controllers.owned_pods.template import pod_of
from nominee.controllers.replica_sets.replicas import (
    Scaling,
    active_on_nodes,
    plan,
    recheck_seconds,
    status_of,
)
from nominee.controllers.shell.controller import Context
from nominee.controllers.shell.owner_references import adopt_and_release
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, controller_of
from nominee.machinery.api.pb import apps, core, meta
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import to_time


class ReplicaSetController(PodOwner[apps.ReplicaSet]):
    """Creates and deletes pods until each replica set has spec.replicas."""

    name = "replicaset-controller"
    component = "replicaset-controller"
    acts_on: ClassVar[Kind[apps.ReplicaSet]] = kinds.REPLICA_SET
    create_before = failpoints.declare(
        "controllers.replica_set.create.before", "a ReplicaSet needs a pod; it is not created"
    )
    create_after = failpoints.declare(
        "controllers.replica_set.create.after", "the pod is created; no event is recorded"
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context, self.acts_on)
        self._terminating = context.gates.enabled("DeploymentReplicaSetTerminatingReplicas")

    async def reconcile(self, key: ObjectKey) -> float | None:
        replica_set = self.owners.get(key.name, key.namespace)
        if replica_set is None:
            self.expectations.forget(key)
            return None
        # Before the pods are read: what the watch shows during the next calls is not among them.
        satisfied = self.satisfied(key)
        selector = self.selector_of(replica_set)
        pods = await adopt_and_release(self.client, replica_set, selector, self.pods, may_adopt=is_active)
        failure: StatusError | None = None
        if satisfied:
            active = [pod for pod in pods if is_active(pod)]
            siblings: Mapping[str, int] = {}
            if len(active) > replica_set.spec.replicas:
                of_namespace = self.pods.by_index("namespace", key.namespace)
                siblings = active_on_nodes(self.sets_of_controller(replica_set), of_namespace)
            work = plan(replica_set, active, siblings, self.clock.now())
            try:
                await self._do(replica_set, work)
            except StatusError as error:
                failure = error
        now = to_time(self.clock.now())
        problem = str(failure) if failure else ""
        status = status_of(replica_set, pods, problem, now, terminating=self._terminating)
        await self.write_status(replica_set, status)
        if failure is not None:
            raise failure
        return recheck_seconds(replica_set, pods, now.seconds, self.clock.now())

    def sets_of_controller(self, replica_set: apps.ReplicaSet) -> Sequence[apps.ReplicaSet]:
        """Return the sets that the controller of this one controls; none for a set without a controller.

        Source: getReplicaSetsWithSameController.
        """
        deployment = controller_of(replica_set)
        if deployment is None:
            return ()
        return [
            each
            for each in self.owners.by_index("owner", deployment.uid)
            if (controller := controller_of(each)) is not None and controller.uid == deployment.uid
        ]

    async def _do(self, replica_set: apps.ReplicaSet, work: Scaling) -> None:
        if work.create:
            pods = [pod_of(replica_set, replica_set.spec.template) for _ in range(work.create)]
            await self.in_growing_batches(pods, lambda pod: self.create_pod(replica_set, pod))
        elif work.delete:
            await self.in_growing_batches(work.delete, lambda pod: self.delete_pod(replica_set, pod))


class ReplicationControllerController(ReplicaSetController):
    """Creates and deletes pods until each replication controller has spec.replicas.

    Source: kube-controller-manager 1.36, pkg/controller/replication.
    """

    name = "replicationcontroller-controller"
    component = "replication-controller"
    acts_on = cast("Kind[apps.ReplicaSet]", kinds.REPLICATION_CONTROLLER)
    create_before = failpoints.declare(
        "controllers.replication_controller.create.before",
        "a ReplicationController needs a pod; it is not created",
    )
    create_after = failpoints.declare(
        "controllers.replication_controller.create.after", "the pod is created; no event is recorded"
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._terminating = False  # the status has no such field

    def selector_of(self, owner: apps.ReplicaSet) -> meta.LabelSelector:
        controller = cast("core.ReplicationController", owner)
        return meta.LabelSelector(matchLabels=controller.spec.selector)

    def sets_of_controller(self, replica_set: apps.ReplicaSet) -> Sequence[apps.ReplicaSet]:
        """Return none: upstream's index by controller holds ReplicaSets alone."""
        return ()
