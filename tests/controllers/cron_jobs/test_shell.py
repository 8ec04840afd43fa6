"""CronJobs over an API server in memory: a year on a simulated clock, restarts, lost writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from nominee.controllers.cron_jobs.shell.cron_jobs import CronJobController
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import batch
from nominee.machinery.runtime.clock import FakeClock, parse_rfc3339, rfc3339, to_time
from tests.controllers.contexts import context_of
from tests.controllers.cron_jobs.test_sync import CREATED, cron_job
from tests.support.fake_api import FakeApi, Request

DAY = 86_400


@asynccontextmanager
async def _controller(api: FakeApi, clock: FakeClock) -> AsyncIterator[CronJobController]:
    context = context_of(api, clock)
    controller = CronJobController(context)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(context.informers.run)
        tasks.start_soon(context.recorders.run)
        await context.informers.wait_synced()
        tasks.start_soon(controller.run)
        await clock.settle()
        yield controller
        tasks.cancel_scope.cancel()


def _finish(api: FakeApi, clock: FakeClock) -> None:
    """Let all Jobs that run complete."""
    for job in api.all_of(kinds.JOB):
        if not job.status.conditions:
            done = copy_of(job)
            done.status.conditions.add(type="Complete", status="True")
            done.status.startTime.CopyFrom(to_time(clock.now() - 60))
            done.status.completionTime.CopyFrom(to_time(clock.now()))
            api.put(done)


def _created(api: FakeApi) -> list[batch.Job]:
    return [job for type_, job in api.log_of(kinds.JOB) if type_ == "ADDED"]


def _status(api: FakeApi) -> batch.CronJobStatus:
    return api.all_of(kinds.CRON_JOB)[0].status


@pytest.mark.slow
async def test_a_year_of_nights_has_a_job_for_each_with_the_hours_that_clocks_skip_and_repeat() -> None:
    api = FakeApi.of(cron_job("30 2 * * *", timeZone="Europe/Berlin"))
    clock = FakeClock(parse_rfc3339(CREATED))
    stamps: list[str] = []
    async with _controller(api, clock):
        for _ in range(365):
            await clock.advance(DAY / 2)
            _finish(api, clock)
            await clock.advance(DAY / 2)
            stamps += [
                job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
                for job in _created(api)
            ]
            api.log.clear()  # the informers have seen it
    assert len(set(stamps)) == len(stamps) == 365
    nights = Counter(stamp[:10] for stamp in stamps)
    assert nights["2026-03-29"] == 0  # 2:30 is skipped
    assert nights["2026-10-25"] == 2  # 2:30+02:00 and 2:30+01:00
    assert len(api.all_of(kinds.JOB)) == 3
    status = _status(api)
    assert not status.active
    assert rfc3339(status.lastScheduleTime) == "2026-12-31T01:30:00Z"
    assert rfc3339(status.lastSuccessfulTime) == "2026-12-31T12:00:30Z"
    reasons = Counter(reason for reason, _, _ in api.events)
    assert set(reasons) == {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"}


async def test_a_controller_that_stops_at_any_write_creates_no_job_twice() -> None:
    for verb in ("create", "update/status"):
        for kind in ("before", "after"):
            api = FakeApi.of(cron_job())
            clock = FakeClock(parse_rfc3339("2026-01-01T00:59:59Z"))
            lost = _lose(api, verb, stored=kind == "after")
            async with _controller(api, clock):
                await clock.advance(2)
                assert lost() == 1
                api.reject = lambda request: None
            async with _controller(api, clock):
                await clock.advance(10)
            assert [job.metadata.name for job in _created(api)] == ["night-29453820"]
            assert [each.name for each in _status(api).active] == ["night-29453820"]
            # The status lists the Job that is stored, also if only the API server knew of it (AlreadyExists).
            assert [each.uid for each in _status(api).active] == [_created(api)[0].metadata.uid]
            assert sum(request.verb == "create" for request in api.requests) >= 2


def _lose(api: FakeApi, verb: str, *, stored: bool) -> Callable[[], int]:
    """Fail every call with this verb; with `stored` the first one is done before its answer is lost."""
    count = 0

    def reject(request: Request) -> Exception | None:
        nonlocal count
        if request.verb != verb:
            return None
        count = min(count + 1, 1)
        if stored and verb == "create" and not _created(api):
            made = copy_of(request.body)
            made.metadata.uid = "uid-made"
            api.put(made)
        return errors.service_unavailable("the connection broke")

    api.reject = reject
    return lambda: count


async def test_a_job_that_runs_is_replaced() -> None:
    api = FakeApi.of(cron_job(concurrencyPolicy="Replace"))
    clock = FakeClock(parse_rfc3339(CREATED))
    async with _controller(api, clock):
        await clock.advance(2 * 3600)
        await clock.advance(5)
    assert [job.metadata.name for job in api.all_of(kinds.JOB)] == ["night-29453880"]
    assert [each.name for each in _status(api).active] == ["night-29453880"]
    assert ("SuccessfulDelete", "night", "Deleted job night-29453820") in api.events


async def test_a_new_schedule_is_not_followed_before_its_next_time() -> None:
    api = FakeApi.of(cron_job("0 0 1 1 *"))
    clock = FakeClock(parse_rfc3339("2026-01-01T05:30:00Z"))
    async with _controller(api, clock):
        changed = copy_of(api.all_of(kinds.CRON_JOB)[0])
        changed.spec.schedule = "0 * * * *"
        api.put(changed)
        await clock.advance(60)
        assert not _created(api)
        await clock.advance(1800)
    assert [job.metadata.name for job in _created(api)] == ["night-29454120"]


async def test_a_job_that_is_gone_is_no_longer_active() -> None:
    api = FakeApi.of(cron_job())
    clock = FakeClock(parse_rfc3339(CREATED))
    async with _controller(api, clock):
        await clock.advance(3600)
        assert len(_status(api).active) == 1
        api.remove(kinds.JOB, "night-29453820")
        await clock.advance(5)
    assert not _status(api).active
    assert ("MissingJob", "night", "Active job went missing: night-29453820") in api.events


async def test_the_job_of_another_client_takes_one_time_and_not_those_after_it() -> None:
    taken = batch.Job()
    taken.metadata.name, taken.metadata.namespace, taken.metadata.uid = "night-29453820", "default", "x"
    api = FakeApi.of(cron_job(), taken)
    clock = FakeClock(parse_rfc3339(CREATED))
    async with _controller(api, clock):
        await clock.advance(3605)
        assert not _status(api).active
        await clock.advance(3600)
    assert [each.name for each in _status(api).active] == ["night-29453880"]
