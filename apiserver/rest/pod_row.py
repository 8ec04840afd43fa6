"""A pod's row: what its phase, conditions and containers come to in one word.

Source: kube-apiserver 1.36, pkg/printers/internalversion (printPod).
"""

from __future__ import annotations

from typing import Any

from apiserver.rest.row import NONE, Row, age, since

_FINISHED = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}
_NODE_LOST = "NodeLost"


class _Restarts:
    """How many, and when the last one was."""

    def __init__(self) -> None:
        self.count = 0
        self.last: Any = None

    def add(self, status: Any) -> None:
        self.count += status.restartCount
        if status.lastState.HasField("terminated"):
            finished = status.lastState.terminated.finishedAt
            if self.last is None or (finished.seconds, finished.nanos) > (self.last.seconds, self.last.nanos):
                self.last = finished

    def text(self, now: float) -> str:
        if not self.count or self.last is None or not self.last.seconds:
            return str(self.count)
        return f"{self.count} ({since(self.last, now)} ago)"


def _exit(terminated: Any) -> str:
    if terminated.reason:
        return str(terminated.reason)
    return f"Signal:{terminated.signal}" if terminated.signal else f"ExitCode:{terminated.exitCode}"


def _has_condition(pod: Any, name: str) -> bool:
    return any(each.type == name and each.status == "True" for each in pod.status.conditions)


def pod_row(pod: Any, now: float) -> Row:
    """The cells of one pod."""
    spec, status = pod.spec, pod.status
    reason = status.reason or status.phase
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.reason == "SchedulingGated":
            reason = "SchedulingGated"
    sidecars = {each.name for each in spec.initContainers if each.restartPolicy == "Always"}
    total = len(spec.containers) + len(sidecars)
    restarts, sidecar_restarts = _Restarts(), _Restarts()
    initializing, ready, why = _initializing(pod, sidecars, restarts, sidecar_restarts)
    reason = why or reason
    if not initializing or _has_condition(pod, "Initialized"):
        restarts = sidecar_restarts
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
            reason = "Running" if _has_condition(pod, "Ready") else "NotReady"
    if pod.metadata.HasField("deletionTimestamp"):
        if status.reason == _NODE_LOST:
            reason = "Unknown"
        elif status.phase not in _FINISHED:
            reason = "Terminating"
    finished = _FINISHED.get(status.phase)
    conditions = (
        [{"type": "Completed", "status": "True", "reason": finished[0], "message": finished[1]}]
        if finished
        else []
    )
    address = status.podIPs[0].ip if status.podIPs else ""
    return Row(
        [
            pod.metadata.name,
            f"{ready}/{total}",
            reason,
            restarts.text(now),
            age(pod.metadata, now),
            address or NONE,
            spec.nodeName or NONE,
            status.nominatedNodeName or NONE,
            _gates(pod),
        ],
        conditions,
    )


def _initializing(
    pod: Any, sidecars: set[str], restarts: _Restarts, sidecar_restarts: _Restarts
) -> tuple[bool, int, str]:
    """(whether init containers are not done, ready sidecars, the word for it); counts restarts on the way."""
    ready = 0
    for index, each in enumerate(pod.status.initContainerStatuses):
        restarts.add(each)
        sidecar = each.name in sidecars
        if sidecar:
            sidecar_restarts.add(each)
        state = each.state
        if state.HasField("terminated") and state.terminated.exitCode == 0:
            continue
        if sidecar and each.started:
            ready += int(each.ready)
            continue
        if state.HasField("terminated"):
            return True, ready, f"Init:{_exit(state.terminated)}"
        if state.HasField("waiting") and state.waiting.reason not in ("", "PodInitializing"):
            return True, ready, f"Init:{state.waiting.reason}"
        return True, ready, f"Init:{index}/{len(pod.spec.initContainers)}"
    return False, ready, ""


def _gates(pod: Any) -> str:
    gates = [gate.conditionType for gate in pod.spec.readinessGates]
    if not gates:
        return NONE
    return f"{sum(_has_condition(pod, gate) for gate in gates)}/{len(gates)}"
