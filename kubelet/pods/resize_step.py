"""The step that actuates what is allocated: one call of the runtime after the other. Pure.

Source: kubelet 1.36, computePodActions and doPodResizeAction; KEP-1287, "CRI Changes".
"""

from __future__ import annotations

from typing import Final

from kubelet.allocation import manager
from kubelet.instructions import Actuate, PodInstruction, SyncLater
from kubelet.node.state import NodeState
from kubelet.pods.record import PodRecord
from kubelet.pods.states import Step
from kubelet.pods.step import Pass
from kubelet.resize import actuation
from kubelet.resize.actuation import ActuationCall, ContainerResize, RestartContainers, SetPodResources
from kubelet.resources.pod_resources import PodResources
from machinery.resources.pod_resources import CPU, MEMORY

ACTUATION_RETRY_SECONDS: Final = 10.0


def resize(p: Pass) -> PodInstruction | None:
    """Compare what is in force with what is allocated, and make the next call of the actuation."""
    record, sync = p.record, p.record.sync
    allocated = p.node.allocated(record)
    if sync.calls and sync.actuates is allocated:
        sync.calls = sync.calls[1:]  # the first one is done
        if not sync.calls:
            _check(p)
        return _next_call(p, first=False) if sync.calls else None
    sync.calls = ()
    if _check(p):
        return None
    if sync.actuates is not allocated:
        sync.actuates = allocated
        p.forget(Step.RESIZE)
    if p.waits(Step.RESIZE, p.node.settings.delays.of(record.pod).actuation):
        return None
    plan = actuation.plan(
        container_resizes(p.node, record), pod_memory_usage=p.node.settings.memory_usage(record.pod, "")
    )
    if plan.error:
        fail(p, plan.error)
        return None
    sync.calls = _calls(record, plan, allocated)
    return _next_call(p, first=True)


def _check(p: Pass) -> bool:
    """Return whether the pod has what it is allocated, and say so in its conditions."""
    actuated = is_actuated(p.node, p.record)
    manager.on_pod_checked(p.node, p.record, actuated=actuated, now=p.at.now, out=p.out)
    if actuated:
        p.record.sync.actuates = None
        p.forget(Step.RESIZE)
    return actuated


def fail(p: Pass, error: str) -> None:
    """Show the error, and try again later."""
    p.record.sync.calls = ()
    manager.on_actuation_failed(p.node, p.record, error, now=p.at.now, out=p.out)
    p.wait(Step.RESIZE, ACTUATION_RETRY_SECONDS)
    p.out.append(SyncLater(p.record.uid, ACTUATION_RETRY_SECONDS))


def is_actuated(node: NodeState, record: PodRecord) -> bool:
    """Return whether all that runs has what it is allocated."""
    return not actuation.in_progress(container_resizes(node, record)) and not _pod_level_differs(
        record, node.allocated(record)
    )


def container_resizes(node: NodeState, record: PodRecord) -> list[ContainerResize]:
    """Return each container with what it has and what it is to have, in the order of the spec."""
    sandbox, allocated = record.sandbox, node.allocated(record)
    if sandbox is None:
        return []
    changed = actuation.changed_limits(sandbox.pod_resources, allocated.pod)
    resizes = []
    for spec in (*record.pod.spec.initContainers, *record.pod.spec.containers):
        container = sandbox.get(spec.name)
        own = allocated.get(spec.name)
        if container is None or own is None:
            continue
        resizes.append(
            ContainerResize(
                name=spec.name,
                actuated=container.resources,
                allocated=own,
                restart_for=frozenset(name for name in (CPU, MEMORY) if actuation.restarts_for(spec, name)),
                inherits=frozenset(
                    name
                    for name in changed
                    if not container.resources.limits.number(name) and not own.limits.number(name)
                ),
                running=container.state == "running",
                memory_usage=node.settings.memory_usage(record.pod, spec.name),
            )
        )
    return resizes


def _pod_level_differs(record: PodRecord, allocated: PodResources) -> bool:
    """Return whether the pod as a whole is allocated other resources than are in force."""
    if allocated.pod is None or record.sandbox is None:
        return False
    in_force = record.sandbox.pod_resources
    return in_force is None or not allocated.pod.same(in_force)


def _calls(
    record: PodRecord, plan: actuation.ResizePlan, allocated: PodResources
) -> tuple[ActuationCall, ...]:
    calls: list[ActuationCall] = list(plan.calls)
    if record.sandbox is not None and record.sandbox.pod_resources != allocated.pod:
        calls.append(SetPodResources(allocated.pod))
    if plan.restart:
        calls.append(RestartContainers(plan.restart, allocated))
    return tuple(calls)


def _next_call(p: Pass, *, first: bool) -> Actuate:
    calls = p.record.sync.calls
    return Actuate(p.record.uid, calls[0], first=first, last=len(calls) == 1)
