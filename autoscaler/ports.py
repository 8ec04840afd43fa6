"""What the loop and the actuation need of the world. The shell has the real ones, tests have others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autoscaler.planning.events import Events
from autoscaler.planning.observation import CloudView, Observation
from machinery.api.pb import core


class CloudError(Exception):
    """The provider has refused, or cannot be reached; the text says why."""


class Cloud(Protocol):
    """The provider."""

    async def refresh(self, nodes: Sequence[core.Node]) -> CloudView:
        """All groups now, and whose nodes these are; CloudError."""
        ...

    async def increase(self, group: str, delta: int) -> None:
        """CloudError where it is refused."""
        ...

    async def decrease_target(self, group: str, delta: int) -> None:
        """`delta` is negative; CloudError where it is refused."""
        ...

    async def delete_nodes(self, group: str, nodes: Sequence[str]) -> None:
        """Gives machines back; CloudError where it is refused."""
        ...


class Cluster(Protocol):
    """The API server. All raise StatusError."""

    def observe(self) -> Observation:
        """The cluster as the watches show it now."""
        ...

    async def fresh(self, node: str) -> Observation:
        """The cluster as it is, at least as far as a node and the pods of it and nominated to it go."""
        ...

    async def mark_to_be_deleted(self, node: str, now: float) -> None:
        """Taints the node, and cordons it if that is asked for."""
        ...

    async def clean_to_be_deleted(self, node: str) -> None:
        """Takes that back."""
        ...

    async def set_deletion_candidate(self, node: str, since: float | None) -> None:
        """Puts the soft taint on (with a time) or takes it off (None)."""
        ...

    async def evict(self, pod: core.Pod, grace_seconds: int) -> None:
        """429 where a budget says no."""
        ...

    async def is_on_node(self, pod: core.Pod, node: str) -> bool:
        """Whether the pod is still there."""
        ...

    def record(self, events: Events) -> None:
        """Record events."""
        ...
