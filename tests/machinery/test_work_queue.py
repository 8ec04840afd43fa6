"""The work queue has client-go's guarantees."""

from __future__ import annotations

import anyio
import pytest

from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.runtime.queues.work_queue import BACKOFF_MAX_SECONDS, WorkQueue


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
    assert len(queue) == 0  # no other worker may have it now
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_all_waiters_get_keys(clock: FakeClock) -> None:
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


async def test_a_rounding_error_that_is_left_of_a_delay_is_waited_for(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 4.4e-16)
    assert queue.get_nowait() is None
    await clock.advance(1e-5)
    assert queue.get_nowait() == "a"


async def test_of_several_delays_the_shortest_counts(clock: FakeClock) -> None:
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


async def test_a_back_off_grows_until_it_is_forgotten(clock: FakeClock) -> None:
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


async def test_workers_are_limited_and_a_key_has_one_worker(clock: FakeClock) -> None:
    running, seen, gate = set[str](), list[str](), anyio.Event()

    async def work(key: str) -> None:
        assert key not in running
        running.add(key)
        seen.append(key)
        await gate.wait()
        running.discard(key)

    queue: WorkQueue[str] = WorkQueue(clock)
    async with anyio.create_task_group() as group:
        for key in ("a", "b"):
            queue.add(key)
        group.start_soon(queue.run_workers, work, 2)
        await clock.settle()
        for key in ("c", "a", "a"):
            queue.add(key)
        await clock.settle()
        assert seen == ["a", "b"], "two workers"
        gate.set()
        await clock.settle()
        assert seen == ["a", "b", "c", "a"]
        assert len(queue) == 0
        group.cancel_scope.cancel()


async def test_workers_process_keys_that_were_delayed(clock: FakeClock) -> None:
    seen: list[tuple[str, float]] = []

    async def work(key: str) -> None:
        seen.append((key, clock.monotonic()))

    queue: WorkQueue[str] = WorkQueue(clock)
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run_workers, work, 2)
        queue.add_after("a", 2)
        await clock.advance(1)
        queue.add_after("b", 0.5)
        queue.add("c")
        await clock.advance(10)
        queue.add_after("a", 1)
        await clock.advance(10)
        group.cancel_scope.cancel()
    assert seen == [("c", 1.0), ("b", 1.5), ("a", 2.0), ("a", 12.0)]


async def test_a_timer_that_has_ended_does_not_keep_the_queue_awake(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock)
    waits = 0

    async def count_waits() -> None:
        nonlocal waits
        waits += 1
        assert waits < 10, "the queue does not sleep"
        await WorkQueue._wait(queue)

    queue._wait = count_waits  # type: ignore[method-assign]
    queue.add_after("a", 5)
    queue.add_after("a", 1)
    async with anyio.create_task_group() as group:
        group.start_soon(queue.get)
        await clock.advance(1)
        group.start_soon(queue.get)
        await clock.advance(10)
        group.cancel_scope.cancel()
