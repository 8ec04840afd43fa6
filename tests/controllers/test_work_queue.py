"""The work queue keeps client-go's promises."""

from __future__ import annotations

import anyio
import pytest

from controllers.work_queue import BACKOFF_MAX_SECONDS, WorkQueue
from machinery.runtime.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_a_key_waits_once(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_added_in_the_middle_of_its_work_comes_again_after_it(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add("a")
    await queue.get()
    queue.add("a")
    assert len(queue) == 0  # nobody else may work on it now
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_several_who_wait_all_get_work(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    got: list[str] = []

    async def worker() -> None:
        got.append(await queue.get())

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(worker)
        await clock.settle()
        for key in ("a", "b", "c"):
            queue.add(key)
        await clock.settle()
        assert sorted(got) == ["a", "b", "c"]


async def test_later_is_the_earliest_of_the_times(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    got: list[tuple[str, float]] = []

    async def worker() -> None:
        while True:
            key = await queue.get()
            got.append((key, clock.monotonic()))
            queue.done(key)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker)
        queue.add_after("a", 10)
        await clock.advance(1)
        queue.add_after("a", 2)
        queue.add_after("a", 5)
        queue.add_after("b", 0)
        await clock.advance(30)
        tasks.cancel_scope.cancel()
    assert got == [("b", 1.0), ("a", 3.0)]


async def test_failures_come_back_later_and_later_until_they_are_forgotten(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    waits: list[float] = []

    async def fail_once() -> None:
        started = clock.monotonic()
        queue.add_rate_limited("a")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.advance, 2 * BACKOFF_MAX_SECONDS)
            key = await queue.get()
            waits.append(round(clock.monotonic() - started, 6))
        queue.done(key)

    for _ in range(3):
        await fail_once()
    for _ in range(20):
        queue.add_rate_limited("other")
    queue.forget("a")
    await fail_once()
    assert waits == [0.005, 0.01, 0.02, 0.005]
    for _ in range(60):
        await fail_once()
    assert waits[-1] == BACKOFF_MAX_SECONDS
