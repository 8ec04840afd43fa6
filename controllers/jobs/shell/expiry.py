"""The shell of the TTL controller."""

from __future__ import annotations

from nominee.controllers.jobs.expiry import remaining_seconds
from nominee.controllers.shell.controller import Context, Controller
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import ignoring, is_not_found
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.runtime import failpoints

DELETE_BEFORE = failpoints.declare(
    "controllers.job_expiry.delete.before", "the time of a finished Job is over; it is not deleted"
)


class FinishedJobs(Controller):
    """Deletes Jobs with their pods when their time after the end is over."""

    name = "ttl-after-finished-controller"
    component = "ttl-after-finished-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.jobs = self.watch(kinds.JOB)

    async def reconcile(self, key: ObjectKey) -> float | None:
        job = self.jobs.get(key.name, key.namespace)
        left = remaining_seconds(job, self.clock.now()) if job is not None else None
        if left != 0:
            return left
        await DELETE_BEFORE.hit(job=str(key))
        with ignoring(is_not_found):
            live = await self.client.get(kinds.JOB, key.name, key.namespace)
            left = remaining_seconds(live, self.clock.now())
            if left != 0:
                return left
            await self.client.delete(
                kinds.JOB, key.name, key.namespace, uid=live.metadata.uid, propagation_policy="Foreground"
            )
        return None
