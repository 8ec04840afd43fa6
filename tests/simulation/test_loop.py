"""The event loop: virtual time, order, and processes that freeze and die."""

from __future__ import annotations

import asyncio
import gc
import signal

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from nominee.simulation.event_loop import interrupts
from nominee.simulation.event_loop.loop import SimulatedLoop, SimulationError
from nominee.simulation.owner import Owner, OwnerState
from tests.simulation.contexts import context_of


def make() -> SimulatedLoop:
    return SimulatedLoop()  # type: ignore[abstract]  # no sockets, threads, signals


def owned(loop: SimulatedLoop, owner: Owner, ticks: list[float]) -> None:
    """Start a task of a process that notes the time each second, and its end."""
    context = context_of(loop, owner)

    async def tick() -> None:
        try:
            while True:
                await anyio.sleep(1.0)
                ticks.append(loop.time())
        finally:
            ticks.append(-1.0)

    loop.create_task(tick(), context=context)


def ended(loop: SimulatedLoop, *owners: Owner) -> None:
    """End a loop as a simulation does; a coroutine that was never awaited would be an error of the test."""
    try:
        loop.finish(owners)
    finally:
        loop.close()
        gc.collect()


def test_tasks_that_others_start_when_they_are_cancelled_end_too() -> None:
    loop = make()
    ends: list[str] = []

    async def second() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("second")

    async def first() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("first")
            started.append(asyncio.ensure_future(second()))

    started: list[asyncio.Future[None]] = []

    async def main() -> None:
        started.append(loop.create_task(first()))
        await anyio.sleep(1.0)

    loop.run_until_complete(main())
    ended(loop)
    assert ends == ["first"]
    assert all(task.done() for task in started)


def test_a_process_that_dies_before_its_task_began_leaves_no_coroutine() -> None:
    loop = make()
    owner = Owner("scheduler", 1)
    context = context_of(loop, owner)

    async def body() -> None:
        raise AssertionError("it must not begin")

    async def process() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(body)
            owner.state = OwnerState.DEAD

    async def main() -> None:
        loop.create_task(process(), context=context)
        await anyio.sleep(1.0)

    loop.run_until_complete(main())
    ended(loop, owner)


@pytest.mark.parametrize("begins", [True, False])
def test_ctrl_c_interrupts_the_program_and_no_simulated_process(begins: bool) -> None:
    loop = make()
    ends: list[str] = []

    async def body() -> None:
        if begins:
            await anyio.sleep_forever()

    async def process() -> None:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(body)
                signal.raise_signal(signal.SIGINT)
                ends.append("goes on")
        except BaseException as error:
            ends.append(type(error).__name__)
            raise

    async def main() -> None:
        loop.create_task(process())
        await anyio.sleep(1.0)

    with pytest.raises(KeyboardInterrupt), interrupts.defer_signals(loop.interrupts):
        loop.run_until_complete(main())
    assert ends == ["goes on"]
    ended(loop)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_at_the_end_lets_the_tasks_end_first() -> None:
    loop = make()
    ends: list[str] = []

    async def body() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            signal.raise_signal(signal.SIGINT)
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1.0)
            ends.append("done")

    async def main() -> None:
        started.append(loop.create_task(body()))
        await anyio.sleep(1.0)

    started: list[asyncio.Task[None]] = []

    def run() -> None:
        with interrupts.defer_signals(loop.interrupts):
            loop.run_until_complete(main())
            ended(loop)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert ends == ["done"]


def test_a_standstill_leaves_no_coroutine_that_never_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nominee.simulation.event_loop.loop.STANDSTILL_CALLBACKS_MAX", 100)
    loop = make()

    async def spin() -> None:
        while True:
            await anyio.lowlevel.checkpoint()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(spin)

    with pytest.raises(SimulationError, match="without time passing"):
        loop.run_until_complete(main())
    ended(loop)


def test_time_jumps_to_the_next_timer() -> None:
    loop = make()

    async def main() -> float:
        await anyio.sleep(3600.0)
        with anyio.move_on_after(5.0):
            await anyio.sleep_forever()
        return loop.time()

    assert loop.run_until_complete(main()) == 3605.0


def test_timers_of_one_moment_run_in_the_order_in_which_they_were_set() -> None:
    loop = make()
    order: list[int] = []

    async def main() -> None:
        for number in range(20):
            loop.call_later(1.0, order.append, number)
        await anyio.sleep(2.0)

    loop.run_until_complete(main())
    assert order == list(range(20))


def test_a_set_of_tasks_has_the_order_of_their_creation() -> None:
    loop = make()

    async def main() -> list[str]:
        tasks = {loop.create_task(asyncio.sleep(0), name=str(number)) for number in range(5)}
        await asyncio.gather(*tasks)
        return [task.get_name() for task in tasks]

    assert loop.run_until_complete(main()) == ["0", "1", "2", "3", "4"]


def test_a_frozen_process_goes_on_where_it_was() -> None:
    loop, owner, ticks = make(), Owner("a", 1), list[float]()

    async def main() -> None:
        owned(loop, owner, ticks)
        await anyio.sleep(1.5)
        owner.state = OwnerState.FROZEN
        await anyio.sleep(10.0)
        assert ticks == [1.0]
        loop.resume(owner)
        await anyio.sleep(0.1)

    loop.run_until_complete(main())
    assert ticks == [1.0, 11.5]


def test_a_dead_process_runs_no_instruction() -> None:
    loop, owner, ticks = make(), Owner("a", 1), list[float]()

    async def main() -> None:
        owned(loop, owner, ticks)
        await anyio.sleep(1.5)
        owner.state = OwnerState.DEAD
        (kept,) = loop.tasks_of(owner)
        await anyio.sleep(10.0)
        assert ticks == [1.0]
        assert not kept.done()
        owner.state = OwnerState.RUNNING
        kept.cancel()

    loop.run_until_complete(main())


def test_threads_and_sockets_do_not_exist() -> None:
    loop = make()

    async def connect() -> None:
        await asyncio.open_connection("127.0.0.1", 9)

    with pytest.raises(NotImplementedError):
        loop.run_until_complete(connect())

    async def thread() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(NotImplementedError):
        loop.run_until_complete(thread())


def test_a_standstill_is_an_error() -> None:
    loop = make()

    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(SimulationError, match="no timer is set"):
        loop.run_until_complete(wait())
