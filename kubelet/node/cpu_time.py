"""The CPU time that containers have used, added up from their usage. Pure.

Nothing measures an emulated container all the time: what it uses when it is read counts for all of the time
since it was read before, or since it started. A kubelet process begins again at that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The present use of one running container; `started` in seconds since the epoch."""

    pod: str
    container: str
    """The id of its run: a container that is restarted begins at 0."""
    started: float
    cores: float


@dataclass(slots=True)
class CpuTime:
    """Core-seconds of a node, and of the pods and containers that run on it, by uid and id."""

    node: float = 0.0
    pods: dict[str, float] = field(default_factory=dict)
    containers: dict[str, float] = field(default_factory=dict)
    _read: float = 0.0

    def read(self, uses: Iterable[Use], now: float) -> None:
        """Add the time that the running containers have used until `now`; forget those that are gone."""
        pods: dict[str, float] = {}
        containers: dict[str, float] = {}
        for use in uses:
            since = self._read if use.container in self.containers else use.started
            used = use.cores * max(now - since, 0.0)
            containers[use.container] = self.containers.get(use.container, 0.0) + used
            pods[use.pod] = pods.get(use.pod, self.pods.get(use.pod, 0.0)) + used
            self.node += used
        self.pods, self.containers, self._read = pods, containers, now
