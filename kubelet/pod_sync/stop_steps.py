"""The steps that end a pod: its containers get their grace period and are stopped. Pure."""

from __future__ import annotations

from typing import Final

from nominee.kubelet import instructions
from nominee.kubelet.allocation import manager
from nominee.kubelet.instructions import PodInstruction, SyncLater
from nominee.kubelet.options import pre_stop_sleep, stop_seconds_max
from nominee.kubelet.pod_sync.step import EARLY_SECONDS_MAX, Pass
from nominee.kubelet.pods.states import Step, Trigger
from nominee.machinery.api.objects import is_terminating

_TERMINATED: Final = 143
"""The exit code of a process that SIGTERM ends."""


def stop(p: Pass) -> Trigger | PodInstruction | None:
    """Signal the containers, and stop them once their time is over."""
    record, sandbox = p.record, p.record.sandbox
    if sandbox is None or not (sandbox.running or sandbox.crashed):
        return Trigger.STOPPED
    if not sandbox.running:
        return instructions.StopContainers(record.uid)
    if p.due(Step.STOP) is None:
        every = (*sandbox.containers, *sandbox.ephemeral)
        running = tuple(one.name for one in every if one.state == "running")
        return instructions.SignalContainers(record.uid, running)
    return None if _has_time(p) else _stopped(p)


def _stopped(p: Pass) -> PodInstruction:
    """Return the instruction for the end: a server exits with 0, a task has not done its work."""
    served = p.record.pod.spec.restartPolicy in ("", "Always")
    return instructions.StopContainers(p.record.uid, 0 if served else _TERMINATED)


def begin_grace_period(p: Pass) -> None:
    """Set when the containers will have stopped by themselves: their own delay, after the preStop hook."""
    pod = p.record.pod
    p.wait(Step.STOP, p.node.settings.delays.of(pod, p.record.restarts).stop + pre_stop_sleep(pod))


def release(p: Pass) -> None:
    """Clear the resize of a pod that has stopped; it takes no room any more."""
    manager.on_pod_terminated(p.node, p.record, now=p.at.now, out=p.out)


def _has_time(p: Pass) -> bool:
    """Return whether the containers still have time: as much as the grace period gives them."""
    pod, due = p.record.pod, p.due(Step.STOP)
    assert due is not None
    # The whole period from when this kubelet learned of it, as upstream's: deletionTimestamp has whole
    # seconds only, so that counting down to it would take up to a second of the grace away.
    seconds = (
        pod.metadata.deletionGracePeriodSeconds
        if is_terminating(pod)
        else pod.spec.terminationGracePeriodSeconds
    )
    left = min(due - p.at.monotonic, stop_seconds_max(pod, float(seconds)))
    if left <= EARLY_SECONDS_MAX:
        return False
    p.wait(Step.STOP, left)
    p.out.append(SyncLater(p.record.uid, left))
    return True
