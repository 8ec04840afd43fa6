"""Containers that crash or start again while the checkpoint cannot be saved: the sync is tried again."""

from __future__ import annotations

from dataclasses import dataclass

from nominee.kubelet import events
from nominee.kubelet.instructions import CrashContainers, PodInstruction, StartCrashedContainers
from tests.kubelet.executor import Executor, new_pod, node_object

RETRY_SECONDS = 1.0
_STARTED = "StartCrashedContainers ProbeContainers"


@dataclass
class Node(Executor):
    """A node on which instructions of a type change the runtime, and fail as that cannot be saved."""

    unsaved: type[PodInstruction] | None = None

    def perform(self, instruction: PodInstruction) -> events.Result:
        result = super().perform(instruction)
        if self.unsaved is None or not isinstance(instruction, self.unsaved):
            return result
        sandbox = self.runtime.sandboxes.get(instruction.uid)
        return events.InstructionFailed(uid=instruction.uid, sandbox=sandbox, at=self.moment())

    def after(self, seconds: float, *, unsaved: type[PodInstruction] | None = None) -> str:
        """Return the calls of the runtime after some time, in order."""
        self.pass_time(seconds)
        self.performed.clear()
        self.unsaved = unsaved
        self.work()
        self.unsaved = None
        names = [type(each).__name__ for each in self.performed]
        return " ".join(name for name in names if name.endswith("Containers"))


def node() -> Node:
    """A node whose pod runs; its container crashes after 5 s."""
    here = Node(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    pod = new_pod("a")
    pod.metadata.annotations.update({"nominee.dev/run-duration": "5s", "nominee.dev/exit-code": "1"})
    here.store(pod)
    here.observe("a")
    here.work()
    return here


def test_a_run_takes_its_time_after_a_crash_that_could_not_be_saved() -> None:
    here = node()
    assert here.after(5.0, unsaved=CrashContainers) == "CrashContainers"
    assert here.after(RETRY_SECONDS) == _STARTED
    assert here.after(4.9) == ""
    assert here.after(0.2) == "CrashContainers"


def test_a_back_off_takes_its_time_after_a_start_that_could_not_be_saved() -> None:
    here = node()
    assert here.after(5.0) == f"CrashContainers {_STARTED}", "the first restart is at once"
    assert here.after(5.0) == "CrashContainers"
    assert here.after(10.0, unsaved=StartCrashedContainers) == "StartCrashedContainers"
    assert here.after(RETRY_SECONDS) == "ProbeContainers"
    assert here.after(5.0) == "CrashContainers"
    assert here.after(19.0) == ""
    assert here.after(1.0) == _STARTED
