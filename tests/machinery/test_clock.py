from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.machinery.api.pb import meta
from nominee.machinery.runtime import clock
from nominee.machinery.runtime.clock import FakeClock


async def test_sleepers_wake_in_order_at_their_own_time() -> None:
    fake = FakeClock(now=100.0)
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await fake.sleep(seconds)
        seen.append((name, fake.now()))

    async with anyio.create_task_group() as group:
        group.start_soon(sleeper, "late", 10)
        group.start_soon(sleeper, "early", 3)
        await fake.wait_for_sleepers(2)
        await fake.advance(5)
        assert seen == [("early", 103.0)]
        assert fake.monotonic() == 5.0
        await fake.advance(5)
    assert seen == [("early", 103.0), ("late", 110.0)]
    assert fake.sleepers == 0


async def test_a_loop_that_sleeps_again_runs_as_often_as_time_allows() -> None:
    fake = FakeClock()
    rounds = 0

    async def loop() -> None:
        nonlocal rounds
        while True:
            await fake.sleep(10)
            rounds += 1

    async with anyio.create_task_group() as group:
        group.start_soon(loop)
        await fake.wait_for_sleepers()
        await fake.advance(35)
        assert rounds == 3
        group.cancel_scope.cancel()
    assert fake.sleepers == 0, "a cancelled sleeper leaves no entry"


async def test_waiting_for_sleepers_has_a_limit() -> None:
    with pytest.raises(TimeoutError):
        await FakeClock().wait_for_sleepers(limit_seconds=0.01)


def test_times_are_cut_and_printed_as_kubernetes_does() -> None:
    assert clock.to_time(1.9) == meta.Time(seconds=1, nanos=0)
    assert clock.to_micro_time(1_763_698_992.1) == meta.MicroTime(seconds=1_763_698_992, nanos=100_000_000)
    assert clock.rfc3339(0.0) == "1970-01-01T00:00:00Z"
    assert clock.rfc3339(meta.Time(seconds=1_763_698_992)) == "2025-11-21T04:23:12Z"
    assert clock.rfc3339_micro(1.5) == "1970-01-01T00:00:01.500000Z"
    assert clock.parse_rfc3339("2025-11-21T06:23:12.25+02:00") == 1_763_698_992.25
    with pytest.raises(ValueError, match="no time zone"):
        clock.parse_rfc3339("2025-11-21T06:23:12")


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
def test_micro_times_round_trip(seconds: int, micros: int) -> None:
    value = meta.MicroTime(seconds=seconds, nanos=micros * 1000)
    assert clock.to_micro_time(clock.from_time(value)) == value
    assert clock.to_micro_time(clock.parse_rfc3339(clock.rfc3339_micro(value))) == value
