"""The context of a sync's steps, and how they wait. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from nominee.kubelet.events import Moment
from nominee.kubelet.instructions import Instruction, PodInstruction, SyncLater
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.pods.states import Step, Trigger

EARLY_SECONDS_MAX: Final = 1e-6
"""A timer that fires up to this much early counts as due: a clock may not resolve a shorter wait."""


@dataclass(slots=True)
class Pass:
    """A sync, or a part of one between two results: the pod, the time, and the instructions so far."""

    node: NodeState
    record: PodRecord
    at: Moment
    out: list[Instruction] = field(default_factory=list)

    def waits(self, step: Step, seconds: float) -> bool:
        """Return whether a step's time has not come; its first call begins the wait."""
        sync = self.record.sync
        when = None if sync.due is None else sync.due.get(step)
        if when is not None:
            return when > self.at.monotonic + EARLY_SECONDS_MAX
        if seconds <= EARLY_SECONDS_MAX:
            return False
        self.wait(step, seconds)
        self.out.append(SyncLater(self.record.uid, seconds))
        return True

    def wait(self, step: Step, seconds: float) -> None:
        """Set the time of a step, without a sync for it."""
        sync = self.record.sync
        if sync.due is None:
            sync.due = {}
        sync.due[step] = self.at.monotonic + seconds

    def due(self, step: Step) -> float | None:
        """Return the time of a step (seconds of the monotonic clock), None if it does not wait."""
        due = self.record.sync.due
        return None if due is None else due.get(step)

    def forget(self, step: Step) -> None:
        """End a step's wait: the next one begins again."""
        sync = self.record.sync
        if sync.due is not None:
            sync.due.pop(step, None)
            if not sync.due:
                sync.due = None


StepFunction = Callable[[Pass], Trigger | PodInstruction | None]
"""Takes a step. Returns an instruction whose result is to be awaited, what moves the pod to another state, or
None where the next step may be taken."""
