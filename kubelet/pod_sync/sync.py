"""One sync of a pod by a pod worker, as steps that the table of the pod's states orders. Pure.

Level-triggered: a sync may come at any time and as often as it likes; each step looks at what is and does
what comes next. What the runtime takes time for is kept as a due time, and the pod is queued again for then.

`begin` starts a sync, `resume` goes on with the result of an instruction. Both return what is to be done; the
sync is over when there is no pod instruction among it. Nothing is done for a pod before its allocation is on
disk.

Source: kubelet 1.36, syncPod, syncTerminatingPod, syncTerminatedPod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from nominee.kubelet import events, instructions
from nominee.kubelet.instructions import ContainerEvent, Instruction, PodInstruction, SyncCause, SyncLater
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pod_sync import api_steps, container_events, resize_step, run_steps, stop_steps
from nominee.kubelet.pod_sync.step import Pass, StepFunction
from nominee.kubelet.pods.last_sync import LastSync
from nominee.kubelet.pods.record import TERMINAL_PHASES, PodRecord
from nominee.kubelet.pods.states import MAY_END, Step, Trigger
from nominee.kubelet.resize.actuation import RestartContainers
from nominee.machinery.api.objects import is_terminating, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version

FAILURE_RETRY_SECONDS: Final = 1.0


class Next(Enum):
    """The continuation of a sync after an instruction that moves the pod to no other state."""

    STEP = "with the next step"
    SAME_STEP = "with the same step"
    END = "not at all"


ON_SUCCESS: Final[Mapping[type[PodInstruction], Trigger | Next]] = {
    instructions.SaveCheckpoint: Next.SAME_STEP,
    instructions.CreateSandbox: Trigger.SANDBOX_CREATED,
    instructions.StartContainers: Trigger.STARTED,
    instructions.StartCrashedContainers: Next.STEP,
    instructions.ChangeImages: Next.STEP,
    instructions.StartEphemeralContainers: Next.STEP,
    instructions.ProbeContainers: Next.STEP,
    instructions.CrashContainers: Next.END,
    instructions.KillContainers: Next.END,
    instructions.ExitContainers: Trigger.EXITED,
    instructions.Actuate: Next.SAME_STEP,
    instructions.SignalContainers: Next.SAME_STEP,
    instructions.StopContainers: Trigger.STOPPED,
    instructions.PatchStatus: Next.STEP,
    instructions.DeletePod: Next.STEP,
}
"""What follows from the success of each pod instruction."""

_STEPS: Final[Mapping[Step, StepFunction]] = {
    Step.CHECK_DEADLINE: run_steps.check_deadline,
    Step.CREATE: run_steps.create,
    Step.PULL: run_steps.pull,
    Step.START: run_steps.start,
    Step.RESTART: run_steps.restart,
    Step.PROBE: run_steps.probe,
    Step.EXIT: run_steps.exit_,
    Step.RESIZE: resize_step.resize,
    Step.DEBUG: run_steps.debug,
    Step.STOP: stop_steps.stop,
    Step.RELEASE: stop_steps.release,
    Step.REPORT: api_steps.report,
    Step.DELETE: api_steps.delete,
}


class UnexpectedResultError(Exception):
    """A result of no instruction that is under way."""


def begin(node: NodeState, event: events.SyncDue) -> list[Instruction]:
    """Start a sync of a pod.

    Raises:
        InvalidTransitionError: the table of the pod's states does not allow what follows.
    """
    record = node.pods.get(event.uid)
    if record is None:
        return _save_removal(node, event.uid)
    record.sandbox = event.sandbox
    sync = record.sync
    sync.last, sync.calls, sync.in_flight = LastSync(record.pod), (), None
    record.fire(Trigger.END if record.state in MAY_END and _is_to_end(record) else Trigger.SYNC)
    return _advance(Pass(node, record, event.at))


def resume(node: NodeState, event: events.Result) -> list[Instruction]:
    """Go on with a sync after the result of its instruction.

    Raises:
        UnexpectedResultError: the pod waits for no result.
        InvalidTransitionError: the table of the pod's states does not allow what follows.
    """
    if isinstance(event, events.CheckpointSaved):
        node.saved_version = max(node.saved_version, event.version)
    record = node.pods.get(event.uid)
    if record is None:
        if isinstance(event, events.InstructionFailed) and node.version > node.saved_version:
            return [SyncLater(event.uid, FAILURE_RETRY_SECONDS)]
        return []
    p, instruction = Pass(node, record, event.at), record.sync.in_flight
    if instruction is None:
        raise UnexpectedResultError(f"pod {key_of(record.pod)}: no instruction for {type(event).__name__}")
    record.sync.in_flight = None
    match event:
        case events.InstructionFailed(sandbox=sandbox):
            record.sandbox, record.sync.steps = sandbox, ()
            p.out.append(SyncLater(record.uid, FAILURE_RETRY_SECONDS))
            return p.out
        case events.CallRefused(error=error, sandbox=sandbox):
            record.sandbox = sandbox
            resize_step.fail(p, error)
            record.sync.steps = record.sync.steps[1:]
            return _advance(p)
        case events.CallDone(sandbox=sandbox):
            record.sandbox = sandbox
        case events.StatusWritten(pod=answer):
            api_steps.take_answer(record, answer)
    _go_on(p, instruction)
    return _advance(p)


def _is_to_end(record: PodRecord) -> bool:
    """Return whether the pod's containers must not run (any more)."""
    return (
        is_terminating(record.pod) or record.outcome is not None or record.pod.status.phase in TERMINAL_PHASES
    )


def _save_removal(node: NodeState, uid: str) -> list[Instruction]:
    """Return the instructions for a pod that is gone: its allocation must go from the disk, too."""
    if node.version > node.saved_version:
        return [instructions.SaveCheckpoint(uid, node.version)]
    return []


def _go_on(p: Pass, instruction: PodInstruction) -> None:
    """Apply the success of an instruction to the sync."""
    record = p.record
    recorded = tuple(_container_events(record.pod, instruction, p.node.settings.version))
    if recorded:
        p.out.append(instructions.RecordContainerEvents(recorded))
    if isinstance(instruction, instructions.SignalContainers):
        stop_steps.begin_grace_period(p)
    following = ON_SUCCESS[type(instruction)]
    if following is Next.SAME_STEP:
        return
    p.forget(record.sync.steps[0])
    if following is Next.STEP:
        record.sync.steps = record.sync.steps[1:]
    elif following is Next.END:
        record.sync.steps = ()
        p.out.append(instructions.QueueSync(record.uid, SyncCause.EXITED))
    elif isinstance(following, Trigger):
        record.fire(following)


def _container_events(
    pod: core.Pod, instruction: PodInstruction, version: Version
) -> Iterable[ContainerEvent]:
    """Return the events of containers that the success of an instruction causes."""
    match instruction:
        case instructions.StartContainers():
            names = [container.name for container in (*pod.spec.initContainers, *pod.spec.containers)]
            return container_events.start_events(pod, names, version)
        case instructions.StartCrashedContainers(_, crashed, _):
            return container_events.start_events(pod, crashed, version)
        case instructions.ChangeImages(_, images, _):
            return container_events.start_events(pod, images, version)
        case instructions.StartEphemeralContainers(_, added):
            return container_events.start_events(pod, added, version)
        case instructions.SignalContainers(_, running):
            return container_events.stopping(pod, running)
        case instructions.Actuate(call=RestartContainers(restarted)):
            killed = container_events.restarting(pod, restarted)
            return (*killed, *container_events.start_events(pod, restarted, version))
    return ()


def _advance(p: Pass) -> list[Instruction]:
    """Take the steps that are left until one needs an answer."""
    record, sync = p.record, p.record.sync
    while sync.steps:
        if record.allocation_version > p.node.saved_version:
            result: PodInstruction | Trigger | None = instructions.SaveCheckpoint(record.uid, p.node.version)
        else:
            result = _STEPS[sync.steps[0]](p)
        if result is None:
            sync.steps = sync.steps[1:]
        elif isinstance(result, Trigger):
            p.forget(sync.steps[0])
            record.fire(result)
        else:
            sync.in_flight = result
            p.out.append(result)
            break
    return p.out
