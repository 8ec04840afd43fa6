"""The step that actuates an allocation: one call of the runtime after the other. Pure.

Source: kubelet 1.36, computePodActions and doPodResizeAction; KEP-1287, "CRI Changes".
"""

from __future__ import annotations

from typing import Final

from nominee.kubelet.allocation import manager
from nominee.kubelet.instructions import Actuate, Actuated, PodInstruction, QueueSync, SyncCause, SyncLater
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.options import Delays
from nominee.kubelet.pod_sync.step import Pass
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.pods.states import Step
from nominee.kubelet.resize import actuation
from nominee.kubelet.resize.actuation import (
    ActuationCall,
    ContainerResize,
    PodResize,
    ResizePlan,
    RestartContainers,
    SetPodResources,
)
from nominee.kubelet.resize.cgroups import PodCgroup, pod_cgroup
from nominee.kubelet.resources.pod_resources import PodResources, inherited_limits, with_resources
from nominee.kubelet.resources.requirements import EMPTY
from nominee.machinery.resources.pod_resources import CPU, MEMORY

ACTUATION_RETRY_SECONDS: Final = 10.0


def resize(p: Pass) -> PodInstruction | None:
    """Compare the resources in force with the allocation, and make the next call of the actuation."""
    record, sync = p.record, p.record.sync
    allocated = p.node.allocated(record)
    if sync.calls and sync.actuates is allocated:
        _called(p, sync.calls[0])
        sync.calls = sync.calls[1:]
        if sync.calls:
            return _next_call(p, first=False)
        _ended(p, success=True)
        _check(p)
        return None
    sync.calls = ()
    if _check(p):
        return None
    if sync.actuates is not allocated:
        sync.actuates = allocated
        p.forget(Step.RESIZE)
    delays = p.node.settings.delays.of(record.pod, record.restarts)
    if p.waits(Step.RESIZE, delays.actuation):
        return None
    plan = plan_of(p.node, record)
    sync.actuation_began = p.at.monotonic
    if plan.error:
        fail(p, plan.error)
        return None
    sync.calls = _calls(record, plan, allocated, delays)
    return _next_call(p, first=True)


def _called(p: Pass, call: ActuationCall) -> None:
    """Let the times of restarted containers begin again, with the next sync."""
    if isinstance(call, RestartContainers):
        p.forget(Step.PROBE)
        p.forget(Step.EXIT)
        p.out.append(QueueSync(p.record.uid, SyncCause.RESTARTED))


def _check(p: Pass) -> bool:
    """Return whether the allocation is in force, and say so in the pod's conditions."""
    actuated = is_actuated(p.node, p.record)
    manager.on_pod_checked(p.node, p.record, actuated=actuated, now=p.at.now, out=p.out)
    if actuated:
        p.record.sync.actuates = None
        p.forget(Step.RESIZE)
    return actuated


def fail(p: Pass, error: str) -> None:
    """Show the error, and try again later."""
    p.record.sync.calls = ()
    _ended(p, success=False)
    manager.on_actuation_failed(p.node, p.record, error, now=p.at.now, out=p.out)
    p.wait(Step.RESIZE, ACTUATION_RETRY_SECONDS)
    p.out.append(SyncLater(p.record.uid, ACTUATION_RETRY_SECONDS))


def _ended(p: Pass, *, success: bool) -> None:
    """Measure an actuation; one that is refused before the first call took no time."""
    p.out.append(Actuated(p.at.monotonic - p.record.sync.actuation_began, success))


def plan_of(node: NodeState, record: PodRecord) -> ResizePlan:
    """Return the plan that actuates the pod's allocation."""
    allocated = node.allocated(record)
    pod = PodResize(
        actuated=_cgroup(node, record, _in_force(record, allocated)),
        allocated=_cgroup(node, record, allocated),
        level_changes=_pod_level_differs(record, allocated),
        memory_usage=node.settings.memory_usage(record.pod, record.sandbox, ""),
    )
    return actuation.plan(container_resizes(node, record), pod)


def _in_force(record: PodRecord, allocated: PodResources) -> PodResources:
    """Return the resources in force; of containers that do not run those that they will start with."""
    sandbox = record.sandbox
    if sandbox is None:
        return allocated
    running = {one.name: one.resources for one in sandbox.containers if one.state == "running"}
    rows = tuple((name, running.get(name, own)) for name, own in allocated.containers)
    return PodResources(rows, sandbox.pod_resources if allocated.pod is not None else None)


def _cgroup(node: NodeState, record: PodRecord, resources: PodResources) -> PodCgroup:
    pod = with_resources(record.pod, resources, pod_level=node.features.resize_pod_level)
    return pod_cgroup(pod, pod_level=node.features.pod_level_resources)


def is_actuated(node: NodeState, record: PodRecord) -> bool:
    """Return whether all running containers have their allocation."""
    return not actuation.in_progress(container_resizes(node, record)) and not _pod_level_differs(
        record, node.allocated(record)
    )


def container_resizes(node: NodeState, record: PodRecord) -> list[ContainerResize]:
    """Return each container with its present and its allocated resources, in the order of the spec."""
    sandbox, allocated = record.sandbox, node.allocated(record)
    if sandbox is None:
        return []
    resizes = []
    for spec in (*record.pod.spec.initContainers, *record.pod.spec.containers):
        container = sandbox.get(spec.name)
        own = allocated.get(spec.name)
        if container is None or own is None:
            continue
        inherited = inherited_limits(own, allocated.pod)
        resizes.append(
            ContainerResize(
                name=spec.name,
                actuated=container.in_force,
                allocated=own.with_limits(inherited),
                own=own,
                inherited=inherited,
                restart_for=frozenset(name for name in (CPU, MEMORY) if actuation.restarts_for(spec, name)),
                running=container.state == "running",
                memory_usage=node.settings.memory_usage(record.pod, sandbox, spec.name),
            )
        )
    return resizes


def _pod_level_differs(record: PodRecord, allocated: PodResources) -> bool:
    """Return whether the pod as a whole is allocated other cpu or memory than is in force.

    Source: kubelet 1.36, isPodLevelResourcesResizeInProgress.
    """
    if allocated.pod is None or record.sandbox is None:
        return False
    in_force = record.sandbox.pod_resources or EMPTY
    return any(
        old.number(name) != new.number(name)
        for old, new in (
            (in_force.requests, allocated.pod.requests),
            (in_force.limits, allocated.pod.limits),
        )
        for name in (CPU, MEMORY)
    )


def _calls(
    record: PodRecord, plan: ResizePlan, allocated: PodResources, delays: Delays
) -> tuple[ActuationCall, ...]:
    calls: list[ActuationCall] = list(plan.calls)
    if record.sandbox is not None and record.sandbox.pod_resources != allocated.pod:
        calls.append(SetPodResources(allocated.pod))
    if plan.restart:
        calls.append(RestartContainers(plan.restart, allocated, ready=not delays.ready))
    return tuple(calls)


def _next_call(p: Pass, *, first: bool) -> Actuate:
    calls = p.record.sync.calls
    return Actuate(p.record.uid, calls[0], first=first, last=len(calls) == 1)
