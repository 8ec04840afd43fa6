"""The replica set controller's shell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from nominee.controllers.claiming import claim
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.replica_sets.expectations import Expectations
from nominee.controllers.replica_sets.replicas import (
    Scaling,
    is_active,
    plan,
    pod_of,
    recheck_seconds,
    status_of,
)
from nominee.controllers.shell.controller import Context, Controller, namespace_ends
from nominee.controllers.shell.owner_references import adopt_and_release
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.objects import (
    ObjectKey,
    controller_of,
    copy_of,
    key_of,
    resource_version_number,
    resource_version_of,
)
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire.codec import to_json

CREATE_BEFORE = failpoints.declare(
    "controllers.replica_set.create.before", "a ReplicaSet needs a pod; it is not created"
)
CREATE_AFTER = failpoints.declare(
    "controllers.replica_set.create.after", "the pod is created; no event is recorded"
)

_T = TypeVar("_T")


class ReplicaSetController(Controller):
    """Creates and deletes pods until each replica set has spec.replicas."""

    name = "replicaset-controller"
    component = "replicaset-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sets = self.watch(kinds.REPLICA_SET)
        self.pods = context.informers.of(kinds.POD)
        self.pods.add_handler(
            on_add=self._pod_added, on_update=self._pod_updated, on_delete=lambda pod, _: self._pod_gone(pod)
        )
        self._expected = Expectations()
        self._terminating = context.gates.enabled("DeploymentReplicaSetTerminatingReplicas")

    def outstanding(self) -> list[str]:
        return [str(key) for key in self._expected.outstanding()]

    # --- events of pods ---

    def _set_of(self, pod: core.Pod) -> ObjectKey | None:
        owner = controller_of(pod)
        if owner is None or owner.kind != "ReplicaSet":
            return None
        return ObjectKey(pod.metadata.namespace, owner.name)

    def _pod_added(self, pod: core.Pod) -> None:
        key = self._set_of(pod)
        if key is not None:
            self._expected.created(key, pod.metadata.uid)
            self.queue.add(key)
        elif controller_of(pod) is None:
            for replica_set in self.sets.list(pod.metadata.namespace):
                self._enqueue(replica_set)  # it may adopt the orphan

    def _pod_updated(self, old: core.Pod, new: core.Pod) -> None:
        if new.metadata.HasField("deletionTimestamp"):
            self._note_deletion(new)
        before, after = self._set_of(old), self._set_of(new)
        if before is not None and before != after:
            self.queue.add(before)
        if after is None:
            if controller_of(new) is None and old.metadata.labels != new.metadata.labels:
                self._pod_added(new)
            return
        self.queue.add(after)

    def _pod_gone(self, pod: core.Pod) -> None:
        self._note_deletion(pod)
        key = self._set_of(pod)
        if key is not None:
            self._expected.created(key, pod.metadata.uid)
            self.queue.add(key)

    def _note_deletion(self, pod: core.Pod) -> None:
        key = self._set_of(pod)
        if key is not None:
            self._expected.deleted(key, pod.metadata.uid)

    # --- reconciliation ---

    async def reconcile(self, key: ObjectKey) -> float | None:
        replica_set = self.sets.get(key.name, key.namespace)
        if replica_set is None:
            self._expected.forget(key)
            return None
        # Before the pods are read: while others are adopted or released, the watch may show those that lack.
        is_current = self._expected.satisfied(key, self.clock.monotonic())
        mine = self.pods.by_index("owner", replica_set.metadata.uid)
        near = [*mine, *self.pods.by_index("orphans", key.namespace)]
        claims = claim(replica_set, replica_set.spec.selector, near, is_active)
        pods = await adopt_and_release(self.client, replica_set, claims)
        failure: StatusError | None = None
        if is_current:
            active = [pod for pod in pods if is_active(pod)]
            siblings = Counter(pod.spec.nodeName for pod in active)
            work = plan(replica_set, active, siblings, self.clock.now())
            try:
                await self._do(replica_set, work)
            except StatusError as error:
                failure = error
        await self._write_status(replica_set, pods, str(failure) if failure else "")
        if failure is not None:
            raise failure
        return recheck_seconds(replica_set, pods, self.clock.now())

    async def _do(self, replica_set: apps.ReplicaSet, work: Scaling) -> None:
        if work.create:
            await self._in_growing_batches([replica_set] * work.create, self._create_pod)
        elif work.delete:
            await self._in_growing_batches(list(work.delete), lambda pod: self._delete_pod(replica_set, pod))

    async def _in_growing_batches(self, items: Sequence[_T], call: Callable[[_T], Awaitable[None]]) -> None:
        """Call for 1, 2, 4, ... items at a time, so that an exhausted quota fails once, not 500 times."""
        done, size = 0, 1
        while done < len(items):
            batch = items[done : done + size]
            failures: list[StatusError] = []

            async def guarded(item: _T, failures: list[StatusError] = failures) -> None:
                try:
                    await call(item)
                except StatusError as error:
                    failures.append(error)

            async with anyio.create_task_group() as tasks:
                for item in batch:
                    tasks.start_soon(guarded, item)
            if failures:
                raise failures[0]
            done += len(batch)
            size *= 2

    async def _create_pod(self, replica_set: apps.ReplicaSet) -> None:
        key = key_of(replica_set)
        await CREATE_BEFORE.hit(replica_set=str(key))
        try:
            pod = await self.client.create(pod_of(replica_set))
        except StatusError as error:
            if namespace_ends(error):
                return
            self.record(replica_set, PlannedEvent("FailedCreate", f"Error creating: {error}", "Warning"))
            raise
        if resource_version_of(pod) > resource_version_number(self.pods.resource_version):
            self._expected.expect(key, self.clock.monotonic(), created=pod.metadata.uid)
        await CREATE_AFTER.hit(replica_set=str(key))
        note = f"Created pod: {pod.metadata.name}"
        self._record_pod(replica_set, "SuccessfulCreate", note, pod)

    async def _delete_pod(self, replica_set: apps.ReplicaSet, pod: core.Pod) -> None:
        key = key_of(replica_set)
        self._expected.expect(key, self.clock.monotonic(), deleted=pod.metadata.uid)
        try:
            await self.client.delete(
                kinds.POD, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid
            )
        except StatusError as error:
            self._expected.deleted(key, pod.metadata.uid)
            if is_not_found(error):
                return
            self.record(replica_set, PlannedEvent("FailedDelete", f"Error deleting: {error}", "Warning"))
            raise
        note = f"Deleted pod: {pod.metadata.name}"
        self._record_pod(replica_set, "SuccessfulDelete", note, pod)

    def _record_pod(self, replica_set: apps.ReplicaSet, reason: str, note: str, pod: core.Pod) -> None:
        # Events that differ in `related` are not aggregated.
        self.recorder.event(replica_set, "Normal", reason, action="", note=note, related=pod)

    async def _write_status(
        self, replica_set: apps.ReplicaSet, pods: Sequence[core.Pod], failure: str
    ) -> None:
        status = status_of(
            replica_set, pods, failure, to_time(self.clock.now()), terminating=self._terminating
        )
        if to_json(status) == to_json(replica_set.status):
            return
        new = copy_of(replica_set)
        new.status.CopyFrom(status)
        await self.client.update(new, subresource="status")
