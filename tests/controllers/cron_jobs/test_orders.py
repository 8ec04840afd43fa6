"""Any order of times, ends of Jobs, refusals and restarts: one Job for the last time, and none twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.controllers.cron_jobs.shell.cron_jobs import CronJobController
from nominee.controllers.jobs.conditions import terminal_condition
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import copy_of, key_of
from nominee.machinery.api.pb import batch
from nominee.machinery.runtime.clock import FakeClock, from_time, parse_rfc3339, to_time
from tests.controllers.contexts import context_of
from tests.controllers.cron_jobs.test_sync import CREATED, cron_job
from tests.support.fake_api import FakeApi, M
from tests.support.patience import PATIENCE_SECONDS

HOUR = 3600
STEPS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from((1, 30, HOUR, 3 * HOUR))),
    st.tuples(st.just("end"), st.sampled_from(("Complete", "Failed"))),
    st.tuples(st.just("suspend"), st.booleans()),
    st.tuples(st.just("refuse"), st.sampled_from(("create", "update/status", "delete"))),
    st.tuples(st.just("lose"), st.just("create")),  # it is done, and its answer is lost
    st.tuples(st.just("restart"), st.just("")),
)


@dataclass
class Api(FakeApi):
    """Names are unique; the answer to the next creation may be lost."""

    loses: bool = False

    async def create(self, obj: M, **more: object) -> M:
        if isinstance(obj, batch.Job) and self.find(kinds.JOB, *reversed(key_of(obj))) is not None:
            raise errors.already_exists(kinds.JOB, obj.metadata.name)
        created = await super().create(obj, **more)
        if isinstance(obj, batch.Job) and self.loses:
            self.loses = False
            raise errors.service_unavailable("the connection broke")
        return created


@dataclass
class World:
    """A CronJob of each hour, and a controller that can be started again."""

    tasks: TaskGroup
    policy: str
    api: Api = field(default_factory=Api)
    clock: FakeClock = field(default_factory=lambda: FakeClock(parse_rfc3339(CREATED) + 1))
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def __post_init__(self) -> None:
        self.api.put(cron_job(concurrencyPolicy=self.policy))

    async def restart(self) -> None:
        self.running.cancel()
        self.running = anyio.CancelScope()
        self.tasks.start_soon(self._run, self.running)
        await self.clock.settle()

    async def _run(self, running: anyio.CancelScope) -> None:
        context = context_of(self.api, self.clock)
        controller = CronJobController(context)
        with running:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(context.informers.run)
                await context.informers.wait_synced()
                tasks.start_soon(controller.run)

    @property
    def cron_job(self) -> batch.CronJob:
        return self.api.all_of(kinds.CRON_JOB)[0]

    def unfinished(self) -> list[str]:
        jobs = self.api.all_of(kinds.JOB)
        return sorted(each.metadata.name for each in jobs if terminal_condition(each) is None)

    def finished(self, type_: str) -> int:
        ends = [terminal_condition(each) for each in self.api.all_of(kinds.JOB)]
        return sum(end is not None and end.type == type_ for end in ends)

    def end(self, type_: str) -> None:
        """Let all Jobs that run complete or fail."""
        for name in self.unfinished():
            (job,) = [each for each in self.api.all_of(kinds.JOB) if each.metadata.name == name]
            done = copy_of(job)
            done.status.conditions.add(type=type_, status="True")
            done.status.startTime.CopyFrom(to_time(self.clock.now() - 1))
            if type_ == "Complete":
                done.status.completionTime.CopyFrom(to_time(self.clock.now()))
            self.api.put(done)

    def suspend(self, suspend: bool) -> None:
        changed = copy_of(self.cron_job)
        changed.spec.suspend = suspend
        self.api.put(changed)

    async def step(self, verb: str, argument: Any) -> None:
        match verb:
            case "wait":
                await self.clock.advance(argument)
            case "end":
                self.end(argument)
            case "suspend":
                self.suspend(argument)
            case "refuse":
                refusal = errors.conflict(kinds.CRON_JOB, "night", "refused by the test")
                self.api.rejections[argument] = [refusal]
            case "lose":
                self.api.loses = True
            case "restart":
                await self.restart()
        await self.clock.advance(1)  # longer than the back-off

    def check(self) -> None:
        """Check that no time has had two Jobs, and that the policy holds."""
        added = Counter(job.metadata.name for type_, job in self.api.log_of(kinds.JOB) if type_ == "ADDED")
        assert set(added.values()) <= {1}, added
        if not any(self.api.rejections.values()):
            assert sorted(each.name for each in self.cron_job.status.active) == self.unfinished()
        if self.policy != "Allow":
            assert len(self.unfinished()) <= 1, self.unfinished()


async def _play(policy: str, steps: list[tuple[str, Any]]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            world = World(tasks, policy)
            await world.restart()
            for verb, argument in steps:
                await world.step(verb, argument)
                world.check()
            world.api.rejections.clear()
            world.api.loses = False
            world.suspend(False)
            world.end("Complete")
            await world.clock.advance(HOUR)
            world.check()
            status, now = world.cron_job.status, world.clock.now()
            assert from_time(status.lastScheduleTime) == now - now % HOUR
            assert sorted(each.name for each in status.active) == world.unfinished()
            assert f"night-{int(now) // HOUR * 60}" in world.unfinished()
            assert world.finished("Complete") <= 3
            assert world.finished("Failed") <= 1
            world.running.cancel()


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(("Allow", "Forbid", "Replace")), st.lists(STEPS, max_size=12))
def test_any_order_ends_with_one_job_for_the_last_time(policy: str, steps: list[tuple[str, Any]]) -> None:
    anyio.run(_play, policy, steps)
