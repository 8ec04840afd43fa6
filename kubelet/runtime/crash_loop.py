"""The back-off of containers that crash, and its texts. Pure.

The first restart is at once, the next after ten seconds, doubling up to five minutes; a container that ran
for long begins again.
Source: kubelet 1.36, pkg/kubelet/kuberuntime (doBackOff) and its container back-off.
"""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.pb import core
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff

FIRST_SECONDS: Final = 10.0
SECONDS_MAX: Final = 300.0
_BACKOFF: Final = ExponentialBackoff(FIRST_SECONDS, SECONDS_MAX)
CALM_SECONDS: Final = 2 * SECONDS_MAX
"""A run of so long ends the loop."""
REASON: Final = "CrashLoopBackOff"


def seconds(crashes: int) -> float:
    """Return for how long a container waits after so many crashes in a row (1: the first)."""
    return _BACKOFF.delay(crashes - 1)


def go_duration(duration: float) -> str:
    """Return a duration as Go prints whole seconds: `10s`, `1m20s`, `5m0s`."""
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def message(pod: core.Pod, container: str, crashes: int) -> str:
    """Return the message of the container's waiting state."""
    return (
        f"back-off {go_duration(seconds(crashes))} restarting failed container={container} pod={_full(pod)}"
    )


def note(pod: core.Pod, container: str) -> str:
    """Return the message of the BackOff event."""
    return f"Back-off restarting failed container {container} in pod {_full(pod)}"


def _full(pod: core.Pod) -> str:
    metadata = pod.metadata
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"
