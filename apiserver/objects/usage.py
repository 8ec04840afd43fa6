"""The usage of nodes and pods, as the kubelets report it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Used:
    """The usage of a node or a container: nanocores of cpu, bytes of memory.

    `time` is that of the measurement by the kubelet's clock, in seconds since the epoch: the times of a pod's
    status, with which an autoscaler compares it, are of the same clock.
    """

    nanocores: int
    memory: int
    time: float


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """The usage as it was asked for at a time (epoch seconds): by node; by pod's uid and container."""

    time: float
    nodes: dict[str, Used] = field(default_factory=dict)
    pods: dict[str, dict[str, Used]] = field(default_factory=dict)


class UsageSource(Protocol):
    """A source of resource usage."""

    async def usage(self) -> UsageSnapshot:
        """Return the current usage."""
