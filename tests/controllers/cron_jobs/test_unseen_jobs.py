"""Jobs of a CronJob that the informer has not shown."""

from __future__ import annotations

import pytest

from nominee.controllers.cron_jobs.shell.cron_jobs import CronJobController
from nominee.controllers.cron_jobs.sync import new_job, note_created
from nominee.controllers.shell.controller import UNSEEN_SECONDS
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import key_of
from nominee.machinery.runtime.clock import FakeClock, parse_rfc3339
from tests.controllers.contexts import context_of
from tests.controllers.cron_jobs.test_sync import cron_job
from tests.support.fake_api import FakeApi

TIME = parse_rfc3339("2026-01-01T01:00:00Z")


def _staged(uid: str = "uid-job", *, owned: bool = True, suspend: bool = False) -> CronJobController:
    """A controller whose informers have a CronJob, with an active Job in the API server with this uid."""
    owner = cron_job(suspend=suspend)
    job = new_job(owner, TIME)
    job.metadata.uid = "uid-job"
    note_created(owner, job, TIME)
    job.metadata.uid = uid
    if not owned:
        del job.metadata.ownerReferences[:]
    context = context_of(FakeApi.of(owner, job), FakeClock(TIME + 1))
    controller = CronJobController(context)
    controller.cron_jobs._put(owner)
    return controller


KEY = key_of(cron_job())


@pytest.mark.parametrize(("suspend", "owned"), [(False, True), (True, True), (False, False)])
async def test_a_cron_job_is_looked_at_again_until_the_informer_has_its_active_job(
    suspend: bool, owned: bool
) -> None:
    """The Job may go before it is shown; then no event would say that it is not active any more."""
    controller = _staged(owned=owned, suspend=suspend)
    assert await controller.reconcile(KEY) == UNSEEN_SECONDS
    job = await controller.client.get(kinds.JOB, "night-29453820", "default")
    controller.jobs._put(job)
    assert await controller.reconcile(KEY) == (None if suspend else pytest.approx(3599.0, abs=1.0))


async def test_another_job_of_the_name_of_an_active_one_is_not_waited_for() -> None:
    controller = _staged("uid-another")
    assert await controller.reconcile(KEY) == pytest.approx(3599.0, abs=1.0)
