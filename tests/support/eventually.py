"""Wait for a condition that gives no notice, such as one of another process."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

import anyio

from nominee.machinery.runtime.clock import SystemClock
from tests.support.patience import PATIENCE_SECONDS

T = TypeVar("T")

POLL_SECONDS = 0.02


@overload
async def eventually(
    read: Callable[[], Awaitable[T]],
    accept: Callable[[T], object] = ...,
    *,
    limit_seconds: float = ...,
    poll_seconds: float = ...,
    explain: Callable[[], object] = ...,
) -> T: ...


@overload
async def eventually(
    read: Callable[[], T],
    accept: Callable[[T], object] = ...,
    *,
    limit_seconds: float = ...,
    poll_seconds: float = ...,
    explain: Callable[[], object] = ...,
) -> T: ...


async def eventually(
    read: Callable[[], Awaitable[T] | T],
    accept: Callable[[T], object] = bool,
    *,
    limit_seconds: float = PATIENCE_SECONDS,
    poll_seconds: float = POLL_SECONDS,
    explain: Callable[[], object] = str,
) -> T:
    """Read until `accept` returns something true for the value, and return that value.

    Raises:
        AssertionError: no value was accepted within the limit; the message has the last one and `explain()`.
    """
    seen: object = "nothing"
    with anyio.move_on_after(limit_seconds):
        while True:
            found = read()
            value = await found if inspect.isawaitable(found) else found
            if accept(value):
                return value
            seen = value
            await anyio.sleep(poll_seconds)
    raise AssertionError(_failure(limit_seconds, seen, explain))


def eventually_sync(
    read: Callable[[], T],
    accept: Callable[[T], object] = bool,
    *,
    limit_seconds: float = PATIENCE_SECONDS,
    poll_seconds: float = POLL_SECONDS,
    explain: Callable[[], object] = str,
) -> T:
    """Do as `eventually` in a test without an event loop."""
    clock = SystemClock()
    deadline = clock.monotonic() + limit_seconds
    while not accept(value := read()):
        assert clock.monotonic() < deadline, _failure(limit_seconds, value, explain)
        threading.Event().wait(poll_seconds)
    return value


def _failure(limit_seconds: float, seen: object, explain: Callable[[], object]) -> str:
    return f"not within {limit_seconds:g} s; last seen: {seen} {explain()}".rstrip()
