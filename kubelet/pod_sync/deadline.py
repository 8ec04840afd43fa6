"""When a pod has been active on its node for longer than `spec.activeDeadlineSeconds`. Pure.

The wall clock counts, which may be set forward: so the deadline is looked at again and again.

Source: kubelet 1.36, activeDeadlineHandler, which syncLoop asks each second.
"""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.pb import core
from nominee.machinery.runtime import clock

REASON = "DeadlineExceeded"
MESSAGE = "Pod was active on the node longer than the specified deadline"
CHECK_SECONDS: Final = 1.0
"""How often it is looked at."""


def seconds_left(pod: core.Pod, seconds: int, *, taken: float | None, now: float) -> float:
    """Return for how long a pod with a deadline of so many seconds may still be active, 0 if no longer.

    It is active from when the kubelet took it: `taken`, `status.startTime` where this kubelet does not know
    (None), or `now` where the status has none yet. Times in seconds since the epoch.
    """
    if taken is None:
        taken = clock.from_time(pod.status.startTime) if pod.status.HasField("startTime") else now
    return max(taken + float(seconds) - now, 0.0)
