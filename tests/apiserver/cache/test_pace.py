"""The pace of watches: how long a turn lasts, and that all rest until the same moment."""

from __future__ import annotations

import anyio
import pytest

from nominee.apiserver.cache.pace import MESSAGE_SECONDS, TURN_SECONDS_MAX, TURN_SECONDS_MIN, Pace
from nominee.machinery.runtime.clock import FakeClock


class Watches:
    """Watches that have sent a message each; `ended` are the times at which their rests ended."""

    def __init__(self) -> None:
        self.clock = FakeClock(1000.0)
        self.begun = self.clock.monotonic()
        self.ended: list[float] = []
        self._pace = Pace(self.clock)

    async def rest(self) -> None:
        await self._pace.rest()
        self.ended.append(self.clock.monotonic() - self.begun)


@pytest.mark.parametrize(
    ("messages", "seconds"),
    [(1, TURN_SECONDS_MIN), (8, TURN_SECONDS_MIN), (40, 40 * MESSAGE_SECONDS), (500, TURN_SECONDS_MAX)],
)
async def test_a_turn_lasts_longer_the_more_messages_were_sent(messages: int, seconds: float) -> None:
    watches = Watches()
    async with anyio.create_task_group() as group:
        for _ in range(messages):
            group.start_soon(watches.rest)
        await watches.clock.advance(seconds * 0.9)
        assert watches.ended == []
        await watches.clock.advance(seconds * 0.2)
    assert watches.ended == [pytest.approx(seconds, abs=1e-6)] * messages


async def test_messages_sent_during_a_turn_make_it_longer() -> None:
    watches = Watches()
    async with anyio.create_task_group() as group:
        group.start_soon(watches.rest)
        await watches.clock.advance(TURN_SECONDS_MIN / 2)
        for _ in range(39):
            group.start_soon(watches.rest)
        await watches.clock.advance(1.0)
    assert watches.ended == [pytest.approx(40 * MESSAGE_SECONDS, abs=1e-6)] * 40


async def test_a_turn_begins_after_the_one_before() -> None:
    watches = Watches()
    async with anyio.create_task_group() as group:
        for begin in (0.0, 1.0):
            group.start_soon(watches.rest)
            await watches.clock.advance(1.0)
            assert watches.ended[-1] == pytest.approx(begin + TURN_SECONDS_MIN, abs=1e-6)


async def test_the_others_go_on_when_the_first_one_leaves() -> None:
    watches = Watches()
    async with anyio.create_task_group() as group:
        first = anyio.CancelScope()

        async def leave() -> None:
            with first:
                await watches.rest()

        group.start_soon(leave)
        await anyio.wait_all_tasks_blocked()
        for _ in range(2):
            group.start_soon(watches.rest)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        assert watches.ended == [0.0, 0.0]
