"""A pod's status as this kubelet writes it: phase, conditions, container statuses, resources. Pure.

Fields that other clients own, such as nominatedNodeName, stay as they are. Source: kubelet 1.36,
generateAPIPodStatus; KEP-1287, "API Changes".
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nominee.kubelet.features import StatusFeatures
from nominee.kubelet.pods.record import TERMINAL_PHASES, Outcome, Waiting
from nominee.kubelet.resize.conditions import DEFERRED, ResizeCondition
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.runtime.sandbox import Container, PodSandbox, prepare
from nominee.kubelet.runtime.terminations import termination_reason
from nominee.kubelet.status.resize_conditions import (
    preemption_disabled,
    resize_status,
    write_preemption_disabled,
    write_resize_conditions,
)
from nominee.kubelet.status.resource_status import write_resources
from nominee.machinery.api import objects
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, meta
from nominee.machinery.resources.qos import recorded_qos_class
from nominee.machinery.runtime import clock

_CONDITION_ORDER = {
    name: place
    for place, name in enumerate(
        (
            "PodResizePending",
            "PodResizeInProgress",
            "PodResizePreemptionDisabled",
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled",
        )
    )
}
_UNKNOWN = core.ContainerStateTerminated(
    exitCode=137,
    reason="ContainerStatusUnknown",
    message="The container could not be located when the pod was terminated",
)
PREEMPTED_CONDITION = "Pod was preempted by Kubelet to accommodate a critical pod."


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The inputs of a status. `pod` is the API's object; `now` in seconds since the epoch."""

    pod: core.Pod
    host_ip: str
    now: float
    base: core.PodStatus | None = None
    """The newest status that is known, where the API's object lags behind our own writes."""
    sandbox: PodSandbox | None = None
    allocated: PodResources | None = None
    pending: ResizeCondition | None = None
    in_progress: ResizeCondition | None = None
    preemption_disabled: bool = False
    """The node forbids preemption for a resize (KEP-5836)."""
    outcome: Outcome | None = None
    terminal: bool = False
    """Its containers have stopped and will not run again."""
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    """By container: why it cannot be created."""

    @property
    def has_address(self) -> bool:
        """Return whether the sandbox's address is known: when containers have started, or failed to."""
        sandbox = self.sandbox
        return sandbox is not None and bool(sandbox.ip) and (sandbox.begun or bool(self.waiting))


def build(view: View, features: StatusFeatures) -> core.PodStatus:
    """Return the whole status.

    A pod that this kubelet ends is Failed once its containers have stopped, and not before: until then they
    use their resources. One that was active for too long is unready at once. Source: kubelet 1.36,
    mergePodStatus; generateAPIPodStatus, where ShouldEvict comes before the conditions.
    """
    pod, sandbox = view.pod, view.sandbox
    is_failed = view.outcome is not None and view.outcome.unready
    if sandbox is not None and sandbox.running and not view.terminal:
        view = replace(view, outcome=None)
    status = copy_of(pod.status if view.base is None else view.base)
    if sandbox is None and _ended_unstarted(view, status):
        sandbox = prepare(pod, now=view.now)
        view = replace(view, sandbox=sandbox)
    now = clock.to_time(view.now)
    if not status.qosClass:
        status.qosClass = recorded_qos_class(pod)
    if not status.HasField("startTime"):
        status.startTime.CopyFrom(clock.to_time(sandbox.started if sandbox is not None else view.now))
    if features.observed_generation and pod.metadata.generation:
        status.observedGeneration = pod.metadata.generation
    if sandbox is not None:
        _write_addresses(status, view, sandbox)
        _write_containers(status, view, sandbox)
    status.phase = _phase(view)
    if view.outcome is not None:
        status.reason, status.message = view.outcome.reason, view.outcome.message
    if view.outcome is not None and view.outcome.preempted:
        _set(
            status, "DisruptionTarget", True, "TerminationByKubelet", PREEMPTED_CONDITION, view, features, now
        )
    if sandbox is not None:
        _write_conditions(status, view, sandbox, features, now, is_failed=is_failed)
    elif view.outcome is not None and not view.outcome.preempted:
        for name in _CONDITION_ORDER:  # a pod that was refused has none of the kubelet's own
            objects.remove_condition(status.conditions, name)
    if features.resize and sandbox is not None and view.allocated is not None:
        write_resources(pod, status, view.allocated, sandbox, pod_level=features.resize_pod_level)
    _write_resize(status, view, features)
    _sort_conditions(status)
    return status


def _ended_unstarted(view: View, status: core.PodStatus) -> bool:
    """Return whether the pod was deleted before this kubelet had admitted it: its containers count as lost.

    Source: kubelet 1.36, SyncTerminatingPod, which writes the containers of the spec, and TerminatePod.
    """
    has_ended = status.phase in TERMINAL_PHASES
    return view.terminal and view.outcome is None and not has_ended and not status.containerStatuses


def _sort_conditions(status: core.PodStatus) -> None:
    """Sort the conditions: the kubelet's own first, in upstream's order, then those of other clients."""
    rows = [core.PodCondition.FromString(row.SerializeToString()) for row in status.conditions]
    rows.sort(key=lambda row: _CONDITION_ORDER.get(row.type, len(_CONDITION_ORDER)))
    del status.conditions[:]
    status.conditions.extend(rows)


def _phase(view: View) -> str:
    if view.outcome is not None:
        return "Failed"
    sandbox = view.sandbox
    if view.terminal:
        if sandbox is None or not sandbox.begun:
            return "Failed"
        succeeded = all(
            container.exit_code == 0
            for container in sandbox.containers
            if (container.state == "exited" or container.crashed) and not container.init
        )
        return "Succeeded" if succeeded else "Failed"
    if sandbox is not None and sandbox.begun:
        return "Running"
    return "Pending"


def _write_addresses(status: core.PodStatus, view: View, sandbox: PodSandbox) -> None:
    """Write the addresses; a pod of the host network has its own before its containers have started."""
    status.hostIP = view.host_ip
    del status.hostIPs[:]
    status.hostIPs.add(ip=view.host_ip)
    ip = sandbox.ip if view.has_address else ""
    if view.pod.spec.hostNetwork:
        ip = view.host_ip
    if ip:
        status.podIP = ip
        del status.podIPs[:]
        status.podIPs.add(ip=ip)


def _write_containers(status: core.PodStatus, view: View, sandbox: PodSandbox) -> None:
    pod, waiting, lost = view.pod, view.waiting, _lost(view, sandbox)
    images = {row.name: row.image for row in (*pod.spec.initContainers, *pod.spec.containers)}
    del status.initContainerStatuses[:]
    del status.containerStatuses[:]
    for container in sandbox.containers:
        rows = status.initContainerStatuses if container.init else status.containerStatuses
        row = rows.add()
        _write_container(row, container, container.image or images.get(container.name, ""), pod)
        row.started = container.state == "running" and not container.starting
        if container.name in lost:
            row.state.terminated.CopyFrom(_UNKNOWN)
        elif container.name in waiting and container.state == "waiting":
            row.state.waiting.reason, row.state.waiting.message = waiting[container.name]
        if container.last_id:
            last = row.lastState.terminated
            _write_terminated(
                last,
                container.last_exit_code,
                container.last_id,
                container.last_started,
                container.last_finished,
            )

    if not pod.spec.ephemeralContainers:
        return
    ephemeral = [row.ephemeralContainerCommon for row in pod.spec.ephemeralContainers]
    images = {row.name: row.image for row in ephemeral}
    del status.ephemeralContainerStatuses[:]
    for container in sandbox.ephemeral:
        # No probe says of these whether they have started.
        _write_container(
            status.ephemeralContainerStatuses.add(), container, images.get(container.name, ""), pod
        )


def _lost(view: View, sandbox: PodSandbox) -> frozenset[str]:
    """Return the containers that count as failed because the pod ended before any of them has started.

    Of a pod with init containers that is the first of these: the others cannot have started.
    Source: kubelet 1.36, TerminatePod.
    """
    if not view.terminal or sandbox.begun or not sandbox.containers:
        return frozenset()
    first = sandbox.containers[0]
    return frozenset([first.name] if first.init else [container.name for container in sandbox.containers])


def _write_container(row: core.ContainerStatus, container: Container, image: str, pod: core.Pod) -> None:
    row.name = container.name
    row.image = image
    row.imageID = _image_id(row.image) if container.id else ""
    row.ready = container.ready
    row.restartCount = container.restarts
    if container.id:
        row.containerID = container.id
    _write_state(row.state, container, pod)


def _write_state(state: core.ContainerState, container: Container, pod: core.Pod) -> None:
    if container.state == "waiting":
        state.waiting.reason = "PodInitializing" if pod.spec.initContainers else "ContainerCreating"
    elif container.state == "running":
        state.running.startedAt.CopyFrom(clock.to_time(container.started))
    else:
        _write_terminated(
            state.terminated, container.exit_code, container.id, container.started, container.finished
        )


def _write_terminated(
    state: core.ContainerStateTerminated, exit_code: int, container: str, started: float, finished: float
) -> None:
    state.exitCode = exit_code
    state.reason = termination_reason(exit_code)
    state.startedAt.CopyFrom(clock.to_time(started))
    state.finishedAt.CopyFrom(clock.to_time(finished))
    state.containerID = container


def _image_id(image: str) -> str:
    return f"{image.split('@')[0].rsplit(':', 1)[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _write_conditions(
    status: core.PodStatus,
    view: View,
    sandbox: PodSandbox,
    features: StatusFeatures,
    now: meta.Time,
    *,
    is_failed: bool,
) -> None:
    has_sandbox = view.has_address and not view.terminal
    _set(status, "PodReadyToStartContainers", has_sandbox, "", "", view, features, now)
    waiting = [one.name for one in sandbox.containers if one.init and one.state == "waiting"]
    if status.phase == "Succeeded":
        _set(status, "Initialized", True, "PodCompleted", "", view, features, now)
    elif waiting:
        message = f"containers with incomplete status: [{' '.join(waiting)}]"
        _set(status, "Initialized", False, "ContainersNotInitialized", message, view, features, now)
    else:
        _set(status, "Initialized", True, "", "", view, features, now)
    reason, message = ("PodFailed", "") if is_failed else _unready(status, view, sandbox)
    _set(status, "ContainersReady", not reason, reason, message, view, features, now)
    if not reason:
        reason, message = _unmet_gates(status, view.pod)
    _set(status, "Ready", not reason, reason, message, view, features, now)
    # It is on this node, also without a scheduler: a client may create a pod with spec.nodeName.
    _set(status, "PodScheduled", True, "", "", view, features, now)


def _unmet_gates(status: core.PodStatus, pod: core.Pod) -> tuple[str, str]:
    """Reason and message for readiness gates whose condition is missing or not True."""
    lines = []
    for gate in pod.spec.readinessGates:
        name = gate.conditionType
        condition = objects.get_condition(status.conditions, name)
        if condition is None:
            lines.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif condition.status != "True":
            lines.append(f'the status of pod readiness gate "{name}" is not "True", but {condition.status}')
    return ("ReadinessGatesNotReady", ", ".join(lines)) if lines else ("", "")


def _unready(status: core.PodStatus, view: View, sandbox: PodSandbox) -> tuple[str, str]:
    """Reason and message of Ready=False; empty when all containers are ready.

    A deleted pod that never ran is Failed only after its conditions. Source: kubelet 1.36, TerminatePod.
    """
    if status.phase == "Succeeded":
        return "PodCompleted", ""
    if status.phase == "Failed" and (sandbox.begun or view.outcome is not None):
        return "PodFailed", ""
    names = [one.name for one in sandbox.containers if (one.sidecar or not one.init) and not one.ready]
    return (
        ("ContainersNotReady", f"containers with unready status: [{' '.join(names)}]") if names else ("", "")
    )


def _set(
    status: core.PodStatus,
    name: str,
    value: bool,
    reason: str,
    message: str,
    view: View,
    features: StatusFeatures,
    now: meta.Time,
) -> None:
    row = core.PodCondition(type=name, status="True" if value else "False", reason=reason, message=message)
    if features.observed_generation and view.pod.metadata.generation:
        row.observedGeneration = view.pod.metadata.generation
    objects.set_condition(status.conditions, row, now)


def _write_resize(status: core.PodStatus, view: View, features: StatusFeatures) -> None:
    pending, in_progress = view.pending, view.in_progress
    if view.terminal or view.outcome is not None:
        pending = in_progress = None
    if features.preemption_policy:
        row = None
        if view.preemption_disabled and pending is not None and pending.reason == DEFERRED:
            row = preemption_disabled(view.pod.spec.nodeName)
            if features.observed_generation:
                row.observedGeneration = pending.observed_generation
        write_preemption_disabled(status, row, clock.to_time(view.now))
    if features.resize_conditions:
        write_resize_conditions(
            status, pending, in_progress, observed_generation=features.observed_generation
        )
    elif features.resize:
        status.resize = resize_status(pending, in_progress)
        if not status.resize:
            status.ClearField("resize")
