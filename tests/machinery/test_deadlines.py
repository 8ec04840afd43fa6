"""Deadlines of many operations on one timer, on the simulated loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from nominee.machinery.runtime.deadlines import Deadlines
from nominee.simulation.event_loop.loop import SimulatedLoop


def played(
    body: Callable[[Deadlines, SimulatedLoop], Coroutine[None, None, None]],
) -> list[tuple[int, float]]:
    """Run the body, and return which deadlines passed, and when."""
    loop = SimulatedLoop()  # type: ignore[abstract]  # no sockets, threads and signals
    passed: list[tuple[int, float]] = []

    async def run() -> None:
        await body(Deadlines(lambda number: passed.append((number, round(loop.time(), 3)))), loop)

    loop.run_until_complete(run())
    loop.close()
    return passed


def test_each_deadline_passes_at_its_time() -> None:
    async def body(deadlines: Deadlines, loop: SimulatedLoop) -> None:
        for number, at in ((1, 3.0), (2, 1.0), (3, 2.0), (4, 2.0)):
            deadlines.add(number, at)
        await asyncio.sleep(10)

    assert played(body) == [(2, 1.0), (3, 2.0), (4, 2.0), (1, 3.0)]


def test_an_operation_that_has_ended_has_no_deadline() -> None:
    async def body(deadlines: Deadlines, loop: SimulatedLoop) -> None:
        deadlines.add(1, 1.0)
        deadlines.add(2, 5.0)
        deadlines.remove(1)
        deadlines.remove(7)
        await asyncio.sleep(2)
        deadlines.add(3, 4.0)
        await asyncio.sleep(10)

    assert played(body) == [(3, 4.0), (2, 5.0)]


def test_closed_deadlines_do_not_pass() -> None:
    async def body(deadlines: Deadlines, loop: SimulatedLoop) -> None:
        deadlines.add(1, 1.0)
        deadlines.close()
        await asyncio.sleep(10)

    assert played(body) == []
