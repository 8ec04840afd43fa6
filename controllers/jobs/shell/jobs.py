"""The job controller's shell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from nominee.controllers.jobs.backoff import Failures
from nominee.controllers.jobs.conditions import terminal_condition
from nominee.controllers.jobs.pods import TRACKING, is_tracked
from nominee.controllers.jobs.sync import BATCH_SECONDS, JobSync, Work
from nominee.controllers.owned_pods.shell.pod_owner import PodOwner
from nominee.controllers.shell import metrics
from nominee.controllers.shell.controller import Context, Controller
from nominee.controllers.shell.owner_references import adopt_and_release
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import Object
from nominee.machinery.api.objects import (
    ObjectKey,
    controller_of,
    has_ended,
    is_terminating,
    key_of,
    resource_version_number,
    resource_version_of,
)
from nominee.machinery.api.pb import batch, core
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff

T = TypeVar("T")
RELEASE_BEFORE = failpoints.declare(
    "controllers.job.release.before", "a Job's status names pods that ended; their finalizers are not removed"
)
RELEASE_AFTER = failpoints.declare(
    "controllers.job.release.after", "the finalizers of a Job's pods are removed; its counters are not raised"
)
_OWN_NAME = "kubernetes.io/job-controller"


def manages(job: batch.Job) -> bool:
    """Report whether the Job is this controller's, and not another one's (spec.managedBy)."""
    return not job.spec.HasField("managedBy") or job.spec.managedBy == _OWN_NAME


async def stop_tracking(client: Client, pod: core.Pod) -> int:
    """Remove the finalizer of a pod; return the resourceVersion that shows it, or 0 for one that is gone."""
    metadata = pod.metadata
    change = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING], "uid": metadata.uid}}
    try:
        return resource_version_of(await client.patch(kinds.POD, metadata.name, metadata.namespace, change))
    except StatusError as error:
        if is_not_found(error):
            return 0
        raise


class JobController(PodOwner[batch.Job]):
    """Creates, deletes and counts the pods of each Job until it is finished."""

    name = "job-controller"
    component = "job-controller"
    create_before = failpoints.declare(
        "controllers.job.create.before", "a Job needs a pod; it is not created"
    )
    create_after = failpoints.declare(
        "controllers.job.create.after", "the pod of a Job is created; no event is recorded"
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context, kinds.JOB)
        self.queue.backoff = ExponentialBackoff(1.0, 60.0)  # job_controller.go, DefaultJobApiBackOff
        self._failures: dict[ObjectKey, Failures] = {}
        self._written: dict[ObjectKey, tuple[int, int]] = {}
        """The resourceVersions of the last writes of a Job's status, and of its pods' finalizers."""
        self.owners.add_handler(on_add=self._job_added)
        self.pods.add_handler(
            on_add=lambda pod: self._pod_seen(None, pod),
            on_update=self._pod_seen,
            on_delete=lambda pod, _: self._pod_seen(pod, None),
        )
        gate = "MutableSchedulingDirectivesForSuspendedJobs"
        self._clears_start_time = context.gates.enabled(gate)

    def pod_changed(self, key: ObjectKey) -> None:
        self.queue.add_after(key, BATCH_SECONDS)

    def _enqueue(self, obj: Object) -> None:  # type: ignore[override]  # objects of one kind
        key = key_of(obj)
        own_write = resource_version_of(obj) <= self._written.get(key, (0, 0))[0]
        self.queue.add_after(key, BATCH_SECONDS if own_write else 0)

    async def reconcile(self, key: ObjectKey) -> float | None:
        job = self.owners.get(key.name, key.namespace)
        if job is None or terminal_condition(job):
            self.expectations.forget(key)
            self._failures.pop(key, None)
            self._written.pop(key, None)
            return None
        if not manages(job):
            return None
        if self._is_behind(key, job):
            return BATCH_SECONDS
        # Before the pods are read: what the watch shows during the next calls is not among them.
        satisfied = self.satisfied(key)
        pods = await adopt_and_release(self.client, job, job.spec.selector, self.pods, finalizer=TRACKING)
        if any(controller_of(pod) is None for pod in pods):
            return BATCH_SECONDS  # until the watch shows their finalizers
        begun, action, result = self.clock.monotonic(), "reconciling", "error"
        sync = JobSync(
            job,
            pods,
            self._failures.get(key, Failures()),
            now=self.clock.now(),
            satisfied=satisfied,
            clears_start_time=self._clears_start_time,
        )
        try:
            work = sync.work()
            action = work.action
            again = await self._sync(key, job, sync, work)
            result = "success"
        finally:
            labels = job.spec.completionMode, result, action
            metrics.JOB_SYNCS.labels(*labels).inc()
            metrics.JOB_SYNC_SECONDS.labels(*labels).observe(self.clock.monotonic() - begun)
        return again

    def _is_behind(self, key: ObjectKey, job: batch.Job) -> bool:
        """Report whether the watches have yet to show earlier writes: an old status counts too few pods."""
        of_job, of_pods = self._written.get(key, (0, 0))
        return (
            resource_version_of(job) < of_job or resource_version_number(self.pods.resource_version) < of_pods
        )

    async def _sync(self, key: ObjectKey, job: batch.Job, sync: JobSync, work: Work) -> float | None:
        failure = await self._do(job, sync, work)
        release = sync.count()
        written = await self._write(key, job, sync)
        if written is not job:
            self._failures[key] = sync.failures
        if release:
            await RELEASE_BEFORE.hit(job=str(key))
        removed, refusal = await self._each(release, lambda pod: self._release(key, pod))
        for policy_action in sync.policy_actions:
            metrics.POLICY_FAILURES.labels(policy_action).inc()
        if removed:
            await RELEASE_AFTER.hit(job=str(key))
        sync.note_release(written, {pod.metadata.uid for pod in removed})
        if refusal is None:
            sync.finish()
        await self._write(key, written, sync)
        if refusal or failure:
            raise refusal or failure  # type: ignore[misc]  # one of them is an error
        return sync.again

    async def _do(self, job: batch.Job, sync: JobSync, work: Work) -> StatusError | None:
        """Create or delete pods; report to the sync which, and return why others could not be."""
        created, failure = await self._each(work.create, lambda pod: self.create_pod(job, pod))
        if work.delete:
            deleted, failure = await self._each(
                work.delete, lambda pod: self._delete(job, pod, counts=work.final)
            )
        else:
            deleted = []
        sync.now = self.clock.now()  # the calls may have taken long: conditions have the time after them
        sync.note_work(len(created), deleted)
        return failure

    async def _delete(self, job: batch.Job, pod: core.Pod, *, counts: bool) -> None:
        if not counts and is_tracked(pod):
            await stop_tracking(self.client, pod)
        await self.delete_pod(job, pod)

    async def _release(self, key: ObjectKey, pod: core.Pod) -> None:
        shown_at = await stop_tracking(self.client, pod)
        of_job, of_pods = self._written.get(key, (0, 0))
        self._written[key] = of_job, max(of_pods, shown_at)

    async def _each(
        self, items: Sequence[T], call: Callable[[T], Awaitable[None]]
    ) -> tuple[list[T], StatusError | None]:
        """Call for the items; return those for which it succeeded, and the first failure."""
        done: list[T] = []

        async def noted(item: T) -> None:
            await call(item)
            done.append(item)

        try:
            await self.in_growing_batches(items, noted)
        except StatusError as error:
            return done, error
        return done, None

    async def _write(self, key: ObjectKey, before: batch.Job, sync: JobSync) -> batch.Job:
        """Write the Job's status, if it changed, and record the events; return the Job as it is then."""
        events, sync.events = sync.events, []
        written = await self.write_status(before, sync.job.status)
        if written is None:
            return before
        self._written[key] = resource_version_of(written), self._written.get(key, (0, 0))[1]
        for event in events:
            self.record(written, event)
        self._count(before, written)
        return written

    def _count(self, before: batch.Job, after: batch.Job) -> None:
        """Count the pods that ended, and the end of the Job, when a status is written."""
        mode = after.spec.completionMode
        for result in ("succeeded", "failed"):
            more = getattr(after.status, result) - getattr(before.status, result)
            metrics.FINISHED_PODS.labels(mode, result).inc(max(more, 0))
        end = terminal_condition(after)
        if end is not None:
            result = "succeeded" if end.type == "Complete" else "failed"
            metrics.FINISHED_JOBS.labels(mode, result, end.reason).inc()

    def _job_added(self, job: batch.Job) -> None:
        if not manages(job):
            metrics.OTHERS_JOBS.labels(job.spec.managedBy).inc()

    def _pod_seen(self, old: core.Pod | None, new: core.Pod | None) -> None:
        """Count pods that ended and have the finalizer."""
        was, now = ((each is not None and has_ended(each) and is_tracked(each)) for each in (old, new))
        if was is not now:
            metrics.TRACKED_PODS.labels("add" if now else "delete").inc()


class OrphanedPods(Controller):
    """Removes the finalizers of pods that no Job will count: of none, of a deleted or of a finished one."""

    name = "job-controller-orphaned-pods"
    component = "job-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = context.informers.of(kinds.POD)
        self.pods.on_change(self._pod_seen, deletions=False)
        self.jobs = context.informers.of(kinds.JOB)
        self.jobs.add_handler(
            on_update=lambda _, job: self._release_all(job) if terminal_condition(job) else None,
            on_delete=lambda job, _: self._release_all(job),
        )

    def _pod_seen(self, pod: core.Pod) -> None:
        if is_tracked(pod) and (controller_of(pod) is None or is_terminating(pod)):
            self._enqueue(pod)

    def _release_all(self, job: batch.Job) -> None:
        for pod in self.pods.by_index("owner", job.metadata.uid):
            if is_tracked(pod):
                self._enqueue(pod)

    async def reconcile(self, key: ObjectKey) -> float | None:
        pod = self.pods.get(key.name, key.namespace)
        if pod is not None and is_tracked(pod) and self._is_orphaned(pod):
            await stop_tracking(self.client, pod)
        return None

    def _is_orphaned(self, pod: core.Pod) -> bool:
        owner = controller_of(pod)
        if owner is None:
            return True
        if (owner.kind, owner.apiVersion) != (kinds.JOB.kind, kinds.JOB.api_version):
            return False
        job = self.jobs.get(owner.name, pod.metadata.namespace)
        if job is None or job.metadata.uid != owner.uid:
            return True
        return manages(job) and terminal_condition(job) is not None
