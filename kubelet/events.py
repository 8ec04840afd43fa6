"""The events of a node and its pods, which enter the kubelet's core.

Changes that the API server shows, the passing of time, and the results of instructions. One sync of a pod is
SyncDue and then, for each instruction that wants an answer, exactly one of the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import Moment as Moment

# From the API server


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsListed:
    """All pods of the node, as the first list shows them after the kubelet has started."""

    pods: tuple[core.Pod, ...]
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsObserved:
    """Pods as the API showed them, by uid; None for one that is gone. In the order in which they count."""

    changes: tuple[tuple[str, core.Pod | None], ...]
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanged:
    """The node object changed."""

    node: core.Node


# From the disk, and from timers


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationsRestored:
    """The checkpoint of an earlier process was read."""

    allocations: Mapping[str, PodResources]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDue:
    """The periodic retry of pending resizes."""

    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncDue:
    """A sync of a pod begins. `sandbox` is the pod in the runtime now, None where it has none."""

    uid: str
    sandbox: PodSandbox | None
    at: Moment


# Results of instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved:
    """The allocations up to this version are on disk."""

    uid: str
    version: int
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDone:
    """The runtime has performed a call; `sandbox` is the pod after it."""

    uid: str
    sandbox: PodSandbox
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRefused:
    """The runtime refused a call of an actuation; `sandbox` is the pod after it."""

    uid: str
    error: str
    sandbox: PodSandbox | None
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusWritten:
    """The API server has taken a status; `pod` is its answer, None where the pod is gone."""

    uid: str
    pod: core.Pod | None
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDeleted:
    """The API server has taken the deletion, or the pod was gone already."""

    uid: str
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionFailed:
    """An instruction failed for a reason outside the node: the disk, the API server.

    `sandbox` is what the runtime has of the pod now.
    """

    uid: str
    sandbox: PodSandbox | None
    at: Moment


Result = CheckpointSaved | CallDone | CallRefused | StatusWritten | PodDeleted | InstructionFailed

Event = PodsListed | PodsObserved | NodeChanged | AllocationsRestored | RetryDue | SyncDue | Result
