"""When a pod has been active on its node for longer than `spec.activeDeadlineSeconds`. Pure.

Source: kubelet 1.36, activeDeadlineHandler.
"""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.machinery.runtime import clock

REASON = "DeadlineExceeded"
MESSAGE = "Pod was active on the node longer than the specified deadline"


def seconds_left(pod: core.Pod, *, taken: float | None, now: float) -> float | None:
    """Return for how long the pod may still be active, 0 if no longer, None without a deadline.

    It is active from when the kubelet took it: `taken`, `status.startTime` where this kubelet does not know
    (None), or `now` where the status has none yet. Times in seconds since the epoch.
    """
    if not pod.spec.HasField("activeDeadlineSeconds"):
        return None
    if taken is None:
        taken = clock.from_time(pod.status.startTime) if pod.status.HasField("startTime") else now
    return max(taken + float(pod.spec.activeDeadlineSeconds) - now, 0.0)
