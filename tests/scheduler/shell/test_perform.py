"""What plugins yield is done, and what fails is raised where it was yielded."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import FailpointError, StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client
from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.api import io_steps
from nominee.scheduler.framework.api.io_steps import (
    BindPod,
    ClearNomination,
    Concurrently,
    Create,
    Delete,
    Failpoint,
    Get,
    IoSteps,
    Patch,
    Run,
    Sleep,
    Update,
    Warn,
)
from nominee.scheduler.shell.calls.perform import Performer
from tests.support.patience import PATIENCE_SECONDS


class Api:
    """Notes calls; fails the first ones as the test says; may hold them."""

    def __init__(self, *failures: StatusError) -> None:
        self.calls: list[str] = []
        self.failures = list(failures)
        self.held: anyio.Event | None = None
        self.arrived = anyio.Event()
        self.cleared: list[core.Pod] = []

    def clear_nomination(self, pod: core.Pod) -> None:
        self.cleared.append(pod)

    def __getattr__(self, verb: str) -> Any:
        async def call(*args: Any, **options: Any) -> str:
            self.calls.append(verb)
            self.arrived.set()
            if self.held is not None:
                await self.held.wait()
            if self.failures:
                raise self.failures.pop(0)
            return verb

        return call


def performer(api: Api, clock: FakeClock | None = None) -> Performer:
    return Performer(cast("Client", api), clock or FakeClock(), api.clear_nomination)


POD = core.Pod()


async def test_each_step_is_done_and_its_result_sent_back() -> None:
    def work() -> IoSteps[list[Any]]:
        return [
            (yield Get(kinds.POD, "p", "default")),
            (yield Create(POD)),
            (yield Update(POD, "status", shielded=True)),
            (yield Patch(kinds.POD, "p", "default", {})),
            (yield Delete(kinds.POD, "p", "default")),
            (yield BindPod("default", "p", "n1", "uid")),
            (yield ClearNomination(POD)),
            (yield Sleep(0)),
            (yield Warn("a warning", {"pod": "p"})),
            (yield Failpoint("scheduler.volumes.written", {"pod": "p"})),
        ]

    api = Api()
    results = await performer(api).perform(work())
    assert results == [*api.calls, None, None, None, None]
    assert api.calls == ["get", "create", "update", "patch", "delete", "bind"]
    assert api.cleared == [POD]


async def test_an_error_is_raised_where_the_step_was_yielded() -> None:
    def work() -> IoSteps[str]:
        try:
            yield Delete(kinds.POD, "p", "default")
        except StatusError as error:
            return f"{error.code}"
        return ""

    assert await performer(Api(errors.not_found(kinds.POD, "p"))).perform(work()) == "404"
    failpoints.arm("scheduler.volumes.written", 'error("armed")')

    def reached() -> IoSteps[None]:
        yield Failpoint("scheduler.volumes.written")

    with pytest.raises(FailpointError, match="armed"):
        await performer(Api()).perform(reached())


@pytest.mark.parametrize(("attempts", "calls"), [(io_steps.ONCE, 1), (3, 3), (io_steps.RETRIED, 4)])
async def test_a_call_is_repeated_while_the_server_is_away(attempts: int, calls: int) -> None:
    api, clock = Api(*(errors.service_unavailable("away") for _ in range(3))), FakeClock()
    outcome: list[object] = []

    def work() -> IoSteps[object]:
        try:
            return (yield Update(POD, attempts=attempts))
        except StatusError as error:
            return error.code

    async def run() -> None:
        outcome.append(await performer(api, clock).perform(work()))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while not outcome:
                await clock.advance(1.0)
    assert (len(api.calls), outcome) == (calls, ["update" if calls == 4 else 503])


@pytest.mark.parametrize("shielded", [True, False])
async def test_a_stopped_work_cleans_up_and_a_shielded_write_is_waited_for(shielded: bool) -> None:
    api = Api()
    api.held = anyio.Event()
    seen: list[str] = []

    def work() -> IoSteps[None]:
        try:
            seen.append((yield Update(POD, shielded=shielded)))
            yield Sleep(60)
        finally:
            seen.append("cleaned up")

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(performer(api).perform, work())
            await api.arrived.wait()
            group.cancel_scope.cancel()
            api.held.set()
    assert seen == (["update"] if shielded else []) + ["cleaned up"]


async def test_works_beside_each_other_are_limited() -> None:
    running = most = 0

    def one() -> IoSteps[None]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        yield Sleep(1)
        running -= 1

    def work() -> IoSteps[None]:
        yield Concurrently([one() for _ in range(5)], 2)

    clock = FakeClock()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(performer(Api(), clock).perform, work())
            await clock.wait_for_sleepers(2)
            await clock.advance(5.0)
    assert (most, running) == (2, 0)


async def test_plugins_from_outside_may_be_asynchronous() -> None:
    async def asynchronous() -> str:
        return "awaited"

    def work() -> IoSteps[object]:
        return (yield Run(asynchronous()))

    run = performer(Api()).run
    assert await run(asynchronous()) == "awaited"
    assert await run(work()) == "awaited"
    assert await run(None) is None
    with pytest.raises(TypeError, match="expected a generator of steps or an awaitable, got str"):
        await run("something else")
