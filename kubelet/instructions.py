"""What the allocation core wants done. The shell does it, in order, and reports back with events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from machinery.api.pb import core

Operation = Literal["add", "resize"]
EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class SaveAllocations:
    """The allocations changed: write the checkpoint before acting on them."""


@dataclass(frozen=True, slots=True)
class AdmitPod:
    """Start the pod."""

    uid: str


@dataclass(frozen=True, slots=True)
class RejectPod:
    """Never start the pod: phase Failed with this reason and message."""

    uid: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class KillPod:
    """Stop a running pod at once: phase Failed with this reason and message."""

    uid: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class SyncPod:
    """Run the pod worker: actuate what is allocated, write the status."""

    uid: str


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Record an event on the pod."""

    pod: core.Pod
    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ScheduleRetry:
    """Replace the timer of the periodic retry."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Retried:
    """The pending resizes were walked (unless the sources are not ready); for the log and metrics."""

    trigger: str


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An admission was decided; for the log and metrics. `reason` is the raw one (OutOfcpu, ...)."""

    uid: str
    operation: Operation
    admitted: bool
    reason: str = ""
    message: str = ""
    was_deferred: bool = False


Instruction = (
    SaveAllocations
    | AdmitPod
    | RejectPod
    | KillPod
    | SyncPod
    | RecordEvent
    | ScheduleRetry
    | Retried
    | Evaluated
)
