"""Ports of the executor: the API server, the cloud provider and the metrics. Tests have others.

The orders (`nominee.autoscaler.orders`) say what each method does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nominee.autoscaler.planning.objects.events import Event
from nominee.autoscaler.planning.objects.observation import CloudView, Observation
from nominee.machinery.api.pb import core


class CloudError(Exception):
    """The provider has refused a request, or cannot be reached; the text is its error."""


class Cloud(Protocol):
    """The cloud provider. All methods raise CloudError."""

    async def refresh(self, nodes: Sequence[core.Node]) -> CloudView: ...

    async def increase(self, group: str, delta: int) -> None: ...

    async def decrease_target(self, group: str, delta: int) -> None: ...

    async def delete_nodes(self, group: str, nodes: Sequence[str]) -> None: ...


class Cluster(Protocol):
    """The API server. All asynchronous methods raise StatusError."""

    def observe(self) -> Observation: ...

    async def read_node(self, node: str) -> Observation: ...

    async def taint_to_be_deleted(self, node: str, now: float) -> None: ...

    async def clean_to_be_deleted(self, node: str) -> None: ...

    async def taint_deletion_candidate(self, node: str, since: float) -> None: ...

    async def clean_deletion_candidate(self, node: str) -> None: ...

    async def evict(self, pod: core.Pod, grace_seconds: int) -> None: ...

    async def is_on_node(self, pod: core.Pod, node: str) -> bool: ...

    def record(self, events: Sequence[Event]) -> None: ...

    async def write_status(self, document: Mapping[str, object], now: float) -> None: ...


class Counters(Protocol):
    """The metrics that are counted outside the loop."""

    def scaled_down_node(self, node: core.Node, *, drain: bool) -> None: ...

    def evicted_pod(self, *, succeeded: bool) -> None: ...
