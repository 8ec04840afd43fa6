"""The CronJob controller's shell."""

from __future__ import annotations

from collections.abc import Sequence

from nominee.controllers.cron_jobs import sync
from nominee.controllers.cron_jobs.schedules import with_zone
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.shell.controller import (
    UNSEEN_SECONDS,
    Context,
    Controller,
    controller_key,
    namespace_ends,
)
from nominee.controllers.shell.metrics import CREATION_SKEW
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_already_exists
from nominee.machinery.api.objects import ObjectKey, copy_of, is_controlled_by, key_of
from nominee.machinery.api.pb import batch, core, meta
from nominee.machinery.client.watches.live_objects import get_if_exists
from nominee.machinery.runtime import failpoints
from nominee.machinery.wire.codec import to_json

CREATE_BEFORE = failpoints.declare(
    "controllers.cron_job.create.before", "a Job of a CronJob is due; it is not created"
)
CREATE_AFTER = failpoints.declare(
    "controllers.cron_job.create.after",
    "the Job that was due is created; the CronJob's status does not list it",
)


class CronJobController(Controller):
    """Creates the Jobs of each CronJob at their times, and deletes old ones."""

    name = "cronjob-controller"
    component = "cronjob-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.cron_jobs = context.informers.of(kinds.CRON_JOB)
        self.cron_jobs.add_handler(on_add=self._enqueue, on_update=self._changed)
        self.jobs = context.informers.of(kinds.JOB)
        self.jobs.on_change(self._job_seen)

    def _changed(self, old: batch.CronJob, new: batch.CronJob) -> None:
        """Queue a CronJob; one with another schedule not before its next time."""
        seconds = 0.0 if with_zone(old) == with_zone(new) else sync.seconds_to_change(new, self.clock.now())
        self.queue.add_after(key_of(new), seconds)

    def _job_seen(self, job: batch.Job) -> None:
        key = controller_key(job, kinds.CRON_JOB)
        if key is not None:
            self.queue.add(key)

    async def reconcile(self, key: ObjectKey) -> float | None:
        before = self.cron_jobs.get(key.name, key.namespace)
        if before is None:
            return None
        cron_job = copy_of(before)
        jobs = self.jobs.by_index("owner", before.metadata.uid)
        failure: StatusError | None = None
        again: float | None = None
        has_unseen = False
        for job in sync.old_jobs(cron_job, jobs):
            await self._delete(cron_job, job)
        try:
            cron_job, has_unseen = await self._note_jobs(cron_job, jobs)
            again = await self._start(cron_job)
        except StatusError as error:
            failure = error
        if to_json(cron_job.status) != to_json(before.status):
            await self.client.update(cron_job, subresource="status")
        if failure is not None:
            raise failure
        if has_unseen:
            return UNSEEN_SECONDS if again is None else min(again, UNSEEN_SECONDS)
        return again

    async def _note_jobs(
        self, cron_job: batch.CronJob, jobs: Sequence[batch.Job]
    ) -> tuple[batch.CronJob, bool]:
        """Enter the states of the Jobs into the status.

        Return the CronJob, or a newer one, and whether an active Job lives that the informer does not have.
        """
        for job in jobs:
            event = sync.note_job(cron_job, job)
            if event is not None and event.reason == "UnexpectedJob":
                metadata = cron_job.metadata
                live = await self.client.get(kinds.CRON_JOB, metadata.name, metadata.namespace)
                if sync.is_active(live, job.metadata.uid):
                    cron_job = live
                    continue
            self.record(cron_job, event)
        known = {job.metadata.uid for job in jobs}
        has_unseen = False
        for each in list(cron_job.status.active):
            if each.uid in known:
                continue
            found = await self._live(each)
            if found is not None:
                # Another one of this name counts, too, as in upstream, but is not waited for.
                has_unseen |= found.metadata.uid == each.uid and not self._is_shown(found)
            else:
                self.record(cron_job, PlannedEvent("MissingJob", f"Active job went missing: {each.name}"))
                sync.remove_active(cron_job, each.uid)
        return cron_job, has_unseen

    def _is_shown(self, job: batch.Job) -> bool:
        """Return whether the informer has a Job."""
        shown = self.jobs.get(job.metadata.name, job.metadata.namespace)
        return shown is not None and shown.metadata.uid == job.metadata.uid

    async def _live(self, of: core.ObjectReference | meta.ObjectMeta) -> batch.Job | None:
        return await get_if_exists(self.client, kinds.JOB, of.name, of.namespace)

    async def _start(self, cron_job: batch.CronJob) -> float | None:
        """Create the Job that is due, and return the seconds until the next one."""
        due = sync.due(cron_job, self.clock.now())
        for event in due.events:
            self.record(cron_job, event)
        if due.job is None:
            return due.again
        if due.replaces:
            await self._delete_active(cron_job)
        await CREATE_BEFORE.hit(job=due.job.metadata.name)
        created = await self._create(cron_job, due.job, due.time)
        await CREATE_AFTER.hit(job=due.job.metadata.name)
        # Upstream does not come back before its resync where another client's Job has the name.
        if created is not None and not sync.is_active(cron_job, created.metadata.uid):
            sync.note_created(cron_job, created, due.time)
        return due.again

    async def _create(self, cron_job: batch.CronJob, job: batch.Job, time: float) -> batch.Job | None:
        """Create the Job of a time; return it, or the one of its name, or None if that is another's."""
        try:
            created = await self.client.create(job)
            CREATION_SKEW.observe(self.clock.now() - time)
        except StatusError as error:
            if is_already_exists(error):
                # It was created before, and the status was not written.
                live = await self._live(job.metadata)
                return live if live is not None and is_controlled_by(live, cron_job) else None
            if not namespace_ends(error):
                self.record(cron_job, PlannedEvent("FailedCreate", f"Error creating job: {error}", "Warning"))
            raise
        self.record(cron_job, PlannedEvent("SuccessfulCreate", f"Created job {created.metadata.name}"))
        return created

    async def _delete_active(self, cron_job: batch.CronJob) -> None:
        for each in list(cron_job.status.active):
            try:
                job = await self.client.get(kinds.JOB, each.name, each.namespace)
            except StatusError as error:
                self.record(cron_job, PlannedEvent("FailedGet", f"Get job: {error}", "Warning"))
                raise
            if (failure := await self._delete(cron_job, job)) is not None:
                raise failure

    async def _delete(self, cron_job: batch.CronJob, job: batch.Job) -> StatusError | None:
        """Delete a Job with its pods; return why it could not be."""
        name = job.metadata.name
        try:
            await self.client.delete(kinds.JOB, name, job.metadata.namespace, propagation_policy="Background")
        except StatusError as error:
            self.record(cron_job, PlannedEvent("FailedDelete", f"Deleted job: {error}", "Warning"))
            return error
        sync.remove_active(cron_job, job.metadata.uid)
        self.record(cron_job, PlannedEvent("SuccessfulDelete", f"Deleted job {name}"))
        return None
