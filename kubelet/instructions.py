"""The instructions of the kubelet's core. The shell performs them, in order.

A pod instruction is answered by a result (an event) before the pod's sync goes on. It is always the last of
what the core returns, and there is at most one at a time for a pod. A node instruction is done at once, and
has no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from nominee.kubelet.resize.actuation import ActuationCall
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core

Operation = Literal["add", "resize"]
EventType = Literal["Normal", "Warning"]


class SyncCause(StrEnum):
    """The cause of a sync."""

    LISTED = "the kubelet has started"
    CHANGED = "the API server shows a change"
    REMOVED = "removed from the API"
    ADMITTED = "admitted"
    REJECTED = "rejected"
    PREEMPTED = "preempted"
    RESIZE = "its pending resize was tried"
    NODE_POLICY = "the node's preemption policy changed"
    EXITED = "its containers exited"
    RESTARTED = "containers were restarted for a resize"


# Node instructions


@dataclass(frozen=True, slots=True)
class QueueSync:
    """Queue the pod for a pod worker."""

    uid: str
    cause: SyncCause


@dataclass(frozen=True, slots=True)
class SyncLater:
    """Queue the pod for a pod worker after some seconds."""

    uid: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ScheduleRetry:
    """Replace the node's timer for the periodic retry of pending resizes."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RemoveSandbox:
    """Kill and remove the sandbox of a pod that is gone from the API."""

    uid: str


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Record an event on the pod."""

    pod: core.Pod
    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    """An event on a container; `regarding` names the container in its field path."""

    regarding: core.ObjectReference
    reason: str
    note: str
    type: str = "Normal"


@dataclass(frozen=True, slots=True)
class RecordContainerEvents:
    """Record events on containers of a pod."""

    events: tuple[ContainerEvent, ...]


@dataclass(frozen=True, slots=True)
class Retried:
    """The pending resizes were tried (unless the sources are not ready); for the log and metrics."""

    trigger: str


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An admission was decided; for the log and metrics. `reason` is the raw one (OutOfcpu, ...).

    `trigger` is what caused the retry that it belongs to, "" for the admission of a new pod; `detail` the
    label of an infeasible resize's metric. `preempted` pods made room for it, of the resource `signal`.
    """

    uid: str
    operation: Operation
    admitted: bool
    reason: str = ""
    message: str = ""
    was_deferred: bool = False
    trigger: str = ""
    detail: str = ""
    preempted: int = 0
    signal: str = ""


@dataclass(frozen=True, slots=True)
class ResizeRequested:
    """A client changed a request or limit of a container; for metrics.

    Source: kubelet 1.36, recordContainerResizeOperations.
    """

    resource: str
    requirement: Literal["requests", "limits"]
    operation: Literal["add", "remove", "increase", "decrease"]


@dataclass(frozen=True, slots=True)
class Actuated:
    """An actuation has ended, after `seconds`; for metrics."""

    seconds: float
    success: bool


# Pod instructions: checkpoint


@dataclass(frozen=True, slots=True)
class SaveCheckpoint:
    """Write the allocations to disk, at least up to this version. Answered by CheckpointSaved."""

    uid: str
    version: int


# Pod instructions: the runtime. Answered by CallDone.


@dataclass(frozen=True, slots=True)
class CreateSandbox:
    """Create the pod's sandbox; its containers wait."""

    uid: str
    pod: core.Pod


@dataclass(frozen=True, slots=True)
class StartContainers:
    """Start all containers with these resources."""

    uid: str
    pod: core.Pod
    resources: PodResources


@dataclass(frozen=True, slots=True)
class StartCrashedContainers:
    """Start the containers that have crashed, with these resources."""

    uid: str
    names: tuple[str, ...]
    resources: PodResources


@dataclass(frozen=True, slots=True)
class ChangeImages:
    """Kill the containers of these names, unless they have crashed, and start them with these images."""

    uid: str
    images: Mapping[str, str]
    resources: PodResources


@dataclass(frozen=True, slots=True)
class StartEphemeralContainers:
    """Start new ephemeral containers."""

    uid: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProbeContainers:
    """Probe the containers that run: they become ready; with `ready` exactly these.

    The startup probes of `starting` have not succeeded.
    """

    uid: str
    ready: tuple[str, ...] | None = None
    starting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CrashContainers:
    """End the containers' run by themselves, as an annotation says; they are to run again.

    With `names` these alone, also those that have ended already.
    """

    uid: str
    exit_code: int
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class KillContainers:
    """Kill containers whose probe failed; with `again` they are to run again."""

    uid: str
    names: tuple[str, ...]
    exit_code: int
    again: bool


@dataclass(frozen=True, slots=True)
class ExitContainers:
    """End the containers' run by themselves, as an annotation says, for good."""

    uid: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class Actuate:
    """Make one call of an actuation; `first` and `last` say where in the actuation it is.

    Answered by CallDone or CallRefused.
    """

    uid: str
    call: ActuationCall
    first: bool
    last: bool


@dataclass(frozen=True, slots=True)
class SignalContainers:
    """Ask the containers to stop (SIGTERM): the grace period begins."""

    uid: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StopContainers:
    """Stop all containers for good."""

    uid: str
    exit_code: int = 0


# Pod instructions: the API server


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Patch the pod's status (strategic merge) so that it becomes `status`. Answered by StatusWritten."""

    uid: str
    pod: ObjectKey
    patch: Mapping[str, object]
    status: core.PodStatus


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete the pod without grace: its containers have stopped. Answered by PodDeleted."""

    uid: str
    pod: ObjectKey


RuntimeCall = (
    CreateSandbox
    | StartContainers
    | StartCrashedContainers
    | ChangeImages
    | StartEphemeralContainers
    | ProbeContainers
    | CrashContainers
    | KillContainers
    | ExitContainers
    | Actuate
    | SignalContainers
    | StopContainers
)
PodInstruction = SaveCheckpoint | RuntimeCall | PatchStatus | DeletePod
NodeInstruction = (
    QueueSync
    | SyncLater
    | ScheduleRetry
    | RemoveSandbox
    | RecordEvent
    | RecordContainerEvents
    | Retried
    | Evaluated
    | ResizeRequested
    | Actuated
)
Instruction = NodeInstruction | PodInstruction
