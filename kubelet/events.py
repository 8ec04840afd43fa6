"""What can happen to a node's pods, as the allocation core hears it. Times are seconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet.resources.pod_resources import PodResources
from machinery.api.pb import core


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsAdded:
    """Pods that this process has not seen: new ones, or all of them after a restart."""

    pods: tuple[core.Pod, ...]
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUpdated:
    """A pod's spec or metadata changed."""

    pod: core.Pod
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReconciled:
    """Only a pod's status changed: mostly what this kubelet wrote, coming back."""

    pod: core.Pod
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsRemoved:
    """Pods are gone from the API."""

    uids: tuple[str, ...]
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSynced:
    """A pod worker's pass found these resources in force in the runtime.

    `settled` says that allocation and runtime agree (containers that do not run are not compared).
    """

    uid: str
    settled: bool
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuationFailed:
    """The runtime refused an allocated resize."""

    uid: str
    error: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTerminated:
    """The pod's containers have stopped for good."""

    uid: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDue:
    """The periodic retry of pending resizes."""

    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanged:
    """The node object changed. Nothing is retried for it."""

    node: core.Node


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesReady:
    """All pods of the API server have been seen. Nothing is retried for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationsRestored:
    """The checkpoint of an earlier process was read."""

    allocations: dict[str, PodResources]


Event = (
    PodsAdded
    | PodUpdated
    | PodReconciled
    | PodsRemoved
    | PodSynced
    | ActuationFailed
    | PodTerminated
    | RetryDue
    | NodeChanged
    | SourcesReady
    | AllocationsRestored
)
