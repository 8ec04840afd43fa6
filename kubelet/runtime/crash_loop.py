"""How long a container that has ended waits to run again, and what is told of it meanwhile. Pure.

The first time at once, then ten seconds, doubling up to five minutes; one that ran for long begins anew.
Source: kubelet 1.36, pkg/kubelet/kuberuntime (doBackOff) and its container back-off.
"""

from __future__ import annotations

from typing import Final

from machinery.api.pb import core
from machinery.runtime.backoff import ExponentialBackoff

FIRST_SECONDS: Final = 10.0
SECONDS_MAX: Final = 300.0
_BACKOFF: Final = ExponentialBackoff(FIRST_SECONDS, SECONDS_MAX)
CALM_SECONDS: Final = 2 * SECONDS_MAX
"""A run of so long ends the loop."""
REASON: Final = "CrashLoopBackOff"


def seconds(crashes: int) -> float:
    """What a container waits after so many crashes in a row (1: the first)."""
    return _BACKOFF.delay(crashes - 1)


def shown(duration: float) -> str:
    """As Go prints whole seconds: `10s`, `1m20s`, `5m0s`."""
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def message(pod: core.Pod, container: str, crashes: int) -> str:
    """Of the waiting state."""
    return f"back-off {shown(seconds(crashes))} restarting failed container={container} pod={_full(pod)}"


def note(pod: core.Pod, container: str) -> str:
    """Of the BackOff event."""
    return f"Back-off restarting failed container {container} in pod {_full(pod)}"


def _full(pod: core.Pod) -> str:
    metadata = pod.metadata
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"
