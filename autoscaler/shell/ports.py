"""Ports of the executor: the API server, the cloud provider and the metrics. Tests have others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nominee.autoscaler.planning.events import Event
from nominee.autoscaler.planning.observation import CloudView, Observation
from nominee.machinery.api.pb import core


class CloudError(Exception):
    """The provider has refused a request, or cannot be reached; the text is its error."""


class Cloud(Protocol):
    """The cloud provider. All methods raise CloudError."""

    async def refresh(self, nodes: Sequence[core.Node]) -> CloudView:
        """Return all groups, and to which of them these nodes belong."""
        ...

    async def increase(self, group: str, delta: int) -> None:
        """Increase the target size of a group by `delta`."""
        ...

    async def decrease_target(self, group: str, delta: int) -> None:
        """Change the target size of a group by `delta`, which is negative, without deleting nodes."""
        ...

    async def delete_nodes(self, group: str, nodes: Sequence[str]) -> None:
        """Delete nodes of a group, and decrease its target size."""
        ...


class Cluster(Protocol):
    """The API server. All asynchronous methods raise StatusError."""

    def observe(self) -> Observation:
        """Return the cluster as the informers' caches have it."""
        ...

    async def read_node(self, node: str) -> Observation:
        """Read a node, its pods and the pods nominated to it from the API server itself."""
        ...

    async def taint_to_be_deleted(self, node: str, now: float) -> None:
        """Add the ToBeDeleted taint to a node, and cordon it if that is configured."""
        ...

    async def clean_to_be_deleted(self, node: str) -> None:
        """Remove the ToBeDeleted taint from a node, and uncordon it."""
        ...

    async def taint_deletion_candidate(self, node: str, since: float) -> None:
        """Add the DeletionCandidate taint to a node."""
        ...

    async def clean_deletion_candidate(self, node: str) -> None:
        """Remove the DeletionCandidate taint from a node."""
        ...

    async def evict(self, pod: core.Pod, grace_seconds: int) -> None:
        """Evict a pod."""
        ...

    async def is_on_node(self, pod: core.Pod, node: str) -> bool:
        """Report whether the pod is still on the node."""
        ...

    def record(self, events: Sequence[Event]) -> None:
        """Record Kubernetes Events."""
        ...

    async def write_status(self, document: Mapping[str, object], now: float) -> None:
        """Write the status ConfigMap."""
        ...


class Counters(Protocol):
    """The metrics that are counted outside the loop."""

    def scaled_down_node(self, node: core.Node, *, drain: bool) -> None:
        """Count a deleted node."""
        ...

    def evicted_pod(self, *, succeeded: bool) -> None:
        """Count the eviction of a pod."""
        ...
