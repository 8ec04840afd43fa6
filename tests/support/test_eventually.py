"""Waiting for a condition returns what was read, and explains what was not reached."""

from __future__ import annotations

import itertools

import pytest

from tests.support.eventually import eventually, eventually_sync


async def test_the_accepted_value_is_returned() -> None:
    numbers = itertools.count()

    async def read() -> int:
        return next(numbers)

    assert await eventually(read, lambda number: number >= 3, poll_seconds=0) == 3
    assert await eventually(lambda: next(numbers), poll_seconds=0) == 4
    assert eventually_sync(lambda: next(numbers), lambda number: number >= 6, poll_seconds=0) == 6


async def test_the_last_value_is_shown_where_none_is_accepted() -> None:
    with pytest.raises(AssertionError, match=r"^not within 0.01 s; last seen: 7 hint$"):
        await eventually(lambda: 7, lambda _: False, limit_seconds=0.01, explain=lambda: "hint")
    with pytest.raises(AssertionError, match=r"^not within 0.01 s; last seen: 7$"):
        eventually_sync(lambda: 7, lambda _: False, limit_seconds=0.01)
