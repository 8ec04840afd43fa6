"""A pod on Permit waits for every plugin that said so, and for none longer than it may."""

from __future__ import annotations

import anyio

from nominee.machinery.runtime.clock import FakeClock
from nominee.scheduler.framework.interface import Status
from nominee.scheduler.shell.attempt.waiting_pods import WaitingPod, WaitingPods
from tests.scheduler.builders import pod


async def outcome_of(waiting: WaitingPod, clock: FakeClock, *advances: float) -> list[Status | None]:
    """What `wait` gave, if it ended after the clock was moved on."""
    results: list[Status | None] = []

    async def wait() -> None:
        results.append(await waiting.wait())

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        for seconds in advances or (0.0,):
            await clock.advance(seconds)
        group.cancel_scope.cancel()
    return results


def waits(clock: FakeClock, **timeouts: float) -> WaitingPod:
    return WaitingPods(clock).add(pod("p"), "n1", timeouts)


async def test_all_must_allow() -> None:
    clock = FakeClock()
    waiting = waits(clock, A=10, B=20)
    waiting.allow("A")
    assert await outcome_of(waiting, clock, 5.0) == []
    assert list(waiting.pending_plugins()) == ["B"]
    waiting.allow("B")
    assert await outcome_of(waiting, clock) == [None]


async def test_the_first_deadline_rejects() -> None:
    clock = FakeClock()
    [status] = await outcome_of(waits(clock, A=90, B=60), clock, 59.0, 1.0)
    assert status is not None
    assert status.is_rejected
    assert status.plugin == "B"
    assert status.message() == "rejected due to timeout after waiting 1m0s at plugin B"


async def test_a_plugin_that_has_allowed_has_no_deadline_any_more() -> None:
    clock = FakeClock()
    waiting = waits(clock, A=10, B=20)
    waiting.allow("A")
    assert await outcome_of(waiting, clock, 15.0) == []
    [status] = await outcome_of(waiting, clock, 5.0)
    assert status is not None
    assert status.plugin == "B"


async def test_the_first_rejection_counts() -> None:
    clock = FakeClock()
    waiting = waits(clock, A=10)
    assert waiting.reject("A", "no")
    assert not waiting.reject("A", "again")
    [status] = await outcome_of(waiting, clock)
    assert status is not None
    assert status.message() == "no"


async def test_a_rejection_by_a_preemptor_is_an_error() -> None:
    clock = FakeClock()
    waiting = WaitingPods(clock).add(pod("p"), "n1", {"A": 10.0}, frozenset({"DefaultPreemption"}))
    waiting.reject("DefaultPreemption", "preempted")
    [status] = await outcome_of(waiting, clock)
    assert status is not None
    assert not status.is_rejected
    assert status.message() == "waiting on permit for pod: preempted"


async def test_all_of_them_by_uid() -> None:
    pods = WaitingPods(FakeClock())
    waiting = pods.add(pod("p"), "n1", {"A": 1.0})
    assert pods.stoppable("uid-p") is waiting
    assert [each.node_name for each in pods] == ["n1"]
    assert pods.reject("uid-p")
    assert not pods.reject("uid-unknown")
    pods.remove("uid-p")
    assert len(pods) == 0
