"""Orders: the side effects that the core asks the executor for, as data.

A step of the loop is a generator of orders. `failure = yield from IncreaseSize("ng1", 2)` gives the order to
the executor (`nominee.autoscaler.shell.executor`) and goes on with its result. A test can read the orders of
a step without an executor: in `list(step)` every order returns None, which means success.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar

from nominee.autoscaler.planning.objects.events import Event
from nominee.autoscaler.planning.objects.observation import CloudView, Observation
from nominee.machinery.api.pb import core

R = TypeVar("R")


class ErrorType(StrEnum):
    """Upstream's error types, as the label of the metric `errors_total`."""

    CLOUD_PROVIDER = "cloudProviderError"
    API_CALL = "apiCallError"
    INTERNAL = "internalError"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed order; the message is the error."""

    type: ErrorType
    message: str
    not_found: bool = False

    def __str__(self) -> str:
        return self.message


class LoopError(Exception):
    """A failure that ends the loop."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Order(Generic[R]):
    """An order whose result is an `R`."""

    __slots__ = ()

    def __iter__(self) -> Generator[Order[Any], Any, R]:
        """Give this order to the executor; the value of `yield from` is its result."""
        result: R = yield self
        return result


Orders: TypeAlias = Generator[Order[Any], Any, R]
"""A generator of orders that returns an `R`."""
Succeeded: TypeAlias = Failure | None

# Reading


@dataclass(frozen=True, slots=True)
class Observe(Order[Observation | Failure]):
    """Read the cluster from the informers' caches, at the beginning of a loop."""


@dataclass(frozen=True, slots=True)
class RefreshCloudProvider(Order[CloudView | Failure]):
    """Read the node groups, and to which of them these nodes belong."""

    nodes: tuple[core.Node, ...]


@dataclass(frozen=True, slots=True)
class ReadNode(Order[Observation | Failure]):
    """Read a node, its pods and the pods nominated to it from the API server itself."""

    node: str


@dataclass(frozen=True, slots=True)
class ReadCachedNode(Order[core.Node | None]):
    """Read a node from the informer's cache; the result is None if it does not exist."""

    node: str


@dataclass(frozen=True, slots=True)
class CheckPodsOnNode(Order[tuple[core.Pod, ...] | Failure]):
    """Read which of these pods are still on the node."""

    node: str
    pods: tuple[core.Pod, ...]


# The cloud provider


@dataclass(frozen=True, slots=True)
class IncreaseSize(Order[Succeeded]):
    """Increase the target size of a group by `delta` nodes."""

    group: str
    delta: int


@dataclass(frozen=True, slots=True)
class DecreaseTargetSize(Order[Succeeded]):
    """Change the target size of a group by `delta`, which is negative. No node is deleted."""

    group: str
    delta: int


@dataclass(frozen=True, slots=True)
class DeleteNodes(Order[Succeeded]):
    """Delete nodes (or instances without nodes) of a group, and decrease its target size."""

    group: str
    nodes: tuple[str, ...]


# Nodes and pods


@dataclass(frozen=True, slots=True)
class TaintToBeDeleted(Order[Succeeded]):
    """Add the ToBeDeleted taint to a node, and cordon it if that is configured."""

    node: str


@dataclass(frozen=True, slots=True)
class CleanToBeDeleted(Order[Succeeded]):
    """Remove the ToBeDeleted taint from a node, and uncordon it."""

    node: str


@dataclass(frozen=True, slots=True)
class TaintDeletionCandidate(Order[Succeeded]):
    """Add the DeletionCandidate taint to a node; `since` in seconds since the epoch."""

    node: str
    since: float


@dataclass(frozen=True, slots=True)
class CleanDeletionCandidate(Order[Succeeded]):
    """Remove the DeletionCandidate taint from a node."""

    node: str


@dataclass(frozen=True, slots=True)
class EvictPod(Order[Succeeded]):
    """Evict a pod."""

    pod: core.Pod
    grace_seconds: int


# Reports


@dataclass(frozen=True, slots=True)
class RecordEvents(Order[None]):
    """Record Kubernetes Events."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class WriteStatus(Order[Succeeded]):
    """Write the status ConfigMap; `now` in seconds since the epoch."""

    document: Mapping[str, object]
    now: float


@dataclass(frozen=True, slots=True)
class CountScaledDownNode(Order[None]):
    """Count a deleted node in the metrics."""

    node: core.Node
    drain: bool


@dataclass(frozen=True, slots=True)
class CountEviction(Order[None]):
    """Count the eviction of a pod in the metrics."""

    succeeded: bool


# Time and concurrency


@dataclass(frozen=True, slots=True)
class Sleep(Order[None]):
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RunInParallel(Order[tuple[Any, ...]]):
    """Carry out several generators of orders concurrently; the result has their return values, in order."""

    parts: tuple[Orders[Any], ...]


@dataclass(frozen=True, slots=True)
class StartDeletion(Order[None]):
    """Start the deletion of a tainted node, beside the loop."""

    node: str
    group: str
    drain: bool
    deletion: Orders[None] = field(repr=False, compare=False)
