"""The usage of nodes and pods, as the kubelets report it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Used:
    """The usage of a node or a container: nanocores of cpu, bytes of memory."""

    nanocores: int
    memory: int


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """The usage at a time (epoch seconds): by node; by pod's uid and container."""

    time: float
    nodes: dict[str, Used] = field(default_factory=dict)
    pods: dict[str, dict[str, Used]] = field(default_factory=dict)


class UsageSource(Protocol):
    """A source of resource usage."""

    async def usage(self) -> UsageSnapshot:
        """Return the current usage."""
