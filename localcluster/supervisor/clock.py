"""Monotonic time for the supervisor.

`nominee.machinery.runtime.clock` is the project's clock, but importing it loads protobuf and anyio (some 15
MiB). The supervisor must use little memory, so it has a clock of its own.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable

Monotonic = Callable[[], float]

SECONDS_MAX = 86_400
"""The longest wait that an option accepts."""


def monotonic() -> float:
    """Return monotonic seconds."""
    return time.monotonic()  # noqa: TID251  # see above


def klog_time() -> str:
    """Return the present time as klog writes it, in UTC: `1114 22:13:20.000000`."""
    now = time.time()  # noqa: TID251  # see above
    return f"{time.strftime('%m%d %H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1e6):06d}"


def wait_until(condition: Callable[[], bool], limit_seconds: float, poll_seconds: float = 0.02) -> bool:
    """Poll until `condition` holds; return False if it does not within the limit."""
    deadline = monotonic() + limit_seconds
    while not condition():
        if monotonic() >= deadline:
            return False
        select.select([], [], [], poll_seconds)
    return True
