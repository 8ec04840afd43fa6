"""Work on large bodies beside the event loop, so that other requests are served meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import anyio

from nominee.machinery.runtime import host

LARGE_BYTES_MIN = 256 << 10
"""To decode as much JSON, or a thirtieth of it as YAML, takes up to 50 ms."""
_YAML_COSTS = 30
_AT_ONCE_MAX = 1
_T = TypeVar("_T")


@cache
def _limiter() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(_AT_ONCE_MAX)


async def decode_body(size: int, decode: Callable[[], _T], *, yaml: bool = False) -> _T:
    """Return the result of `decode` for a body of `size` bytes; raises as it does.

    It may run in a thread, so it changes nothing that others use.
    """
    if size * (_YAML_COSTS if yaml else 1) < LARGE_BYTES_MIN:
        return decode()
    return await host.current().blocking(decode, _limiter())
