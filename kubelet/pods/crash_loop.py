"""The back-off of containers that end and are to run again, and its texts. Pure.

The first restart is at once, the next after ten seconds, doubling up to five minutes. A container that has
not been started for twice as long begins again, and so do all when the kubelet starts.
Source: kubelet 1.36, pkg/kubelet/kuberuntime (doBackOff); client-go, flowcontrol.Backoff.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nominee.kubelet.resources.requirements import Requirements
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff

FIRST_SECONDS: Final = 10.0
SECONDS_MAX: Final = 300.0
_BACKOFF: Final = ExponentialBackoff(FIRST_SECONDS, SECONDS_MAX)
EXPIRES_SECONDS: Final = 2 * SECONDS_MAX
REASON: Final = "CrashLoopBackOff"


class BackOff(NamedTuple):
    """The back-off of a container that was started again; with another image or resources it has another one.

    Source: kubelet 1.36, GetBackoffKey.
    """

    image: str
    resources: Requirements
    seconds: float
    """For how long it waits when it has ended."""
    started: float
    """When it was started again, in seconds since the epoch."""

    def until(self, end: float) -> float:
        """Return when the container may run again that ended at this time."""
        return min(end + self.seconds, self.started + EXPIRES_SECONDS)

    def is_of(self, image: str, resources: Requirements, now: float) -> bool:
        """Return whether it counts for a container of this image with these resources."""
        is_same = self.image == image and self.resources.same(resources)
        return is_same and now - self.started < EXPIRES_SECONDS


def following(before: BackOff | None, image: str, resources: Requirements, now: float) -> BackOff:
    """Return the back-off of a container that is started again now."""
    seconds = FIRST_SECONDS if before is None else min(2 * before.seconds, SECONDS_MAX)
    return BackOff(image, resources, seconds, now)


def seconds(failures: int) -> float:
    """Return for how long a container waits whose image could not be pulled so often before (0: never)."""
    return _BACKOFF.delay(failures)


def go_duration(duration: float) -> str:
    """Return a duration as Go prints whole seconds: `10s`, `1m20s`, `5m0s`."""
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def message(pod: core.Pod, container: str, duration: float) -> str:
    """Return the message of the container's waiting state."""
    return f"back-off {go_duration(duration)} restarting failed container={container} pod={_full(pod)}"


def note(pod: core.Pod, container: str) -> str:
    """Return the message of the BackOff event."""
    return f"Back-off restarting failed container {container} in pod {_full(pod)}"


def _full(pod: core.Pod) -> str:
    metadata = pod.metadata
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"
