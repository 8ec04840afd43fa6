"""The READY, STATUS and RESTARTS columns of pods.

Source: kube-apiserver 1.36, pkg/printers/internalversion (printPod).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nominee.machinery.api.pb import core, meta
from nominee.machinery.printing.durations import human_duration

_FINISHED = ("Succeeded", "Failed")
_NODE_LOST = "NodeLost"


@dataclass(slots=True)
class Restarts:
    """The restarts of containers, and when the last of them ended before its restart."""

    count: int = 0
    last: meta.Time | None = None

    def add(self, status: core.ContainerStatus) -> None:
        """Count a container's restarts."""
        self.count += status.restartCount
        if status.lastState.HasField("terminated"):
            finished = status.lastState.terminated.finishedAt
            if self.last is None or (finished.seconds, finished.nanos) > (self.last.seconds, self.last.nanos):
                self.last = finished

    def text(self, now: float) -> str:
        """Return the RESTARTS cell at a time in seconds since the epoch: `0`, `3 (5m ago)`."""
        if not self.count or self.last is None or not self.last.seconds:
            return str(self.count)
        ago = human_duration(now - self.last.seconds - self.last.nanos / 1e9)
        return f"{self.count} ({ago} ago)"


@dataclass(frozen=True, slots=True)
class PodSummary:
    """The summary of a pod's phase, conditions and containers: `ready` of `total` containers, the STATUS."""

    ready: int
    total: int
    status: str
    restarts: Restarts


@dataclass(slots=True)
class _InitContainers:
    """The init containers' part; `reason` is empty once all of them are done."""

    sidecars: frozenset[str]
    ready: int = 0
    reason: str = ""
    restarts: Restarts = field(default_factory=Restarts)
    sidecar_restarts: Restarts = field(default_factory=Restarts)


def pod_status(pod: core.Pod) -> str:
    """Return kubectl's STATUS of a pod: the phase, or a more specific reason."""
    return pod_summary(pod).status


def pod_summary(pod: core.Pod) -> PodSummary:
    """Return a pod's READY, STATUS and RESTARTS."""
    spec, status = pod.spec, pod.status
    reason = status.reason or status.phase
    if any(row.type == "PodScheduled" and row.reason == "SchedulingGated" for row in status.conditions):
        reason = "SchedulingGated"
    init = _init_containers(pod)
    total = len(spec.containers) + len(init.sidecars)
    ready, restarts = init.ready, init.restarts
    reason = init.reason or reason
    if not init.reason or has_true_condition(pod, "Initialized"):
        restarts = init.sidecar_restarts
        running = False
        for each in reversed(status.containerStatuses):
            restarts.add(each)
            state = each.state
            if state.HasField("waiting") and state.waiting.reason:
                reason = state.waiting.reason
            elif state.HasField("terminated"):
                reason = _exit(state.terminated)
            elif each.ready and state.HasField("running"):
                running = True
                ready += 1
        if reason == "Completed" and running:
            reason = "Running" if has_true_condition(pod, "Ready") else "NotReady"
    if pod.metadata.HasField("deletionTimestamp"):
        if status.reason == _NODE_LOST:
            reason = "Unknown"
        elif status.phase not in _FINISHED:
            reason = "Terminating"
    return PodSummary(ready, total, reason, restarts)


def has_true_condition(pod: core.Pod, name: str) -> bool:
    """Return whether the pod has the condition `name` with status True."""
    return any(each.type == name and each.status == "True" for each in pod.status.conditions)


def _init_containers(pod: core.Pod) -> _InitContainers:
    """Count ready sidecars and restarts up to the first init container that is not done."""
    found = _InitContainers(
        frozenset(each.name for each in pod.spec.initContainers if each.restartPolicy == "Always")
    )
    for index, each in enumerate(pod.status.initContainerStatuses):
        found.restarts.add(each)
        sidecar = each.name in found.sidecars
        if sidecar:
            found.sidecar_restarts.add(each)
        state = each.state
        if state.HasField("terminated") and state.terminated.exitCode == 0:
            continue
        if sidecar and each.started:
            found.ready += int(each.ready)
            continue
        if state.HasField("terminated"):
            found.reason = f"Init:{_exit(state.terminated)}"
        elif state.HasField("waiting") and state.waiting.reason not in ("", "PodInitializing"):
            found.reason = f"Init:{state.waiting.reason}"
        else:
            found.reason = f"Init:{index}/{len(pod.spec.initContainers)}"
        break
    return found


def _exit(terminated: core.ContainerStateTerminated) -> str:
    if terminated.reason:
        return terminated.reason
    return f"Signal:{terminated.signal}" if terminated.signal else f"ExitCode:{terminated.exitCode}"
