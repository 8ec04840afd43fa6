"""The order of an actuation: a plan of cgroup writes and container updates. Pure.

Memory first, then cpu. Within one, the pod's cgroup grows before its containers and shrinks after them, and
containers shrink before others grow, so that the containers never have more than the pod. To add a limit to
an unlimited pod is growth for cpu, of which the kubelet reads -1, and shrinking for memory, of which it reads
the largest number (cgroup v1, and the recordings; of a cgroup v2 it reads -1). Limits are never removed.
Source: kubelet 1.36, computePodActions, doPodResizeAction and GetPodCgroupConfig. Judge:
tests/golden/kubelet_actuation.jsonl.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from nominee.kubelet.resize.cgroups import PodCgroup, cpu_quota, cpu_shares
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import NO_RESOURCES, Requirements, ResourceList
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import CPU, MEMORY

ResourceName = Literal["cpu", "memory"]
PHASES: tuple[ResourceName, ...] = ("memory", "cpu")
UNLIMITED: Final[Mapping[ResourceName, int]] = {"memory": 2**63 - 1, "cpu": -1}
"""What the kubelet reads of a pod's cgroup without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerResize:
    """One container: its resources, and its allocation. Sizes in bytes.

    Where it has no limit of its own, both have the limit that it inherits from its pod.
    """

    name: str
    actuated: Requirements
    allocated: Requirements
    own: Requirements | None = None
    """What it is allocated by itself; None where that is `allocated`."""
    inherited: ResourceList = NO_RESOURCES
    """The limits that it will inherit."""
    restart_for: frozenset[str] = frozenset()
    """Resources whose change needs a restart (resizePolicy RestartContainer)."""
    running: bool = True
    memory_usage: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResize:
    """The pod as a whole: its cgroup as it is and as it is to be. Sizes in bytes."""

    actuated: PodCgroup
    allocated: PodCgroup
    level_changes: bool = False
    """Whether its pod-level resources change."""
    memory_usage: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the runtime or one cgroup write. 0 means unlimited (container) or unchanged (pod)."""

    call: Literal["podSandbox", "podCgroup", "container"]
    container: str = ""
    resource: ResourceName = "cpu"
    cpu_quota: int | None = None
    """Microseconds in 100 ms."""
    cpu_shares: int | None = None
    memory_limit: int | None = None
    allocated: Requirements | None = None
    """Of a container update: what the container is allocated; it has that of `resource` afterwards."""
    inherited: ResourceList = NO_RESOURCES
    """Of a container update: the limits that the container inherits, likewise."""


@dataclass(frozen=True, slots=True)
class SetPodResources:
    """Make these the pod-level resources in force; None for a pod that has none."""

    resources: Requirements | None


@dataclass(frozen=True, slots=True)
class RestartContainers:
    """Kill these containers and start them again, with their allocation.

    `ready`: they are ready as they were; otherwise they are probed first.
    """

    names: tuple[str, ...]
    resources: PodResources
    ready: bool = True


ActuationCall = Call | SetPodResources | RestartContainers


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizePlan:
    """The restarts (killed before, started after the calls), and `calls` in their order."""

    restart: tuple[str, ...] = ()
    update: dict[ResourceName, tuple[str, ...]] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    error: str = ""
    """Why none of the calls may be made."""

    @property
    def needed(self) -> bool:
        return bool(self.restart or self.update)


def in_progress(containers: Sequence[ContainerResize]) -> bool:
    """Return whether a running container has other cpu or memory than it is allocated."""
    return any(container.running and _changes(container) for container in containers)


def plan(containers: Sequence[ContainerResize], pod: PodResize) -> ResizePlan:
    """Return the plan for a pod and all its containers, given in the order of the spec."""
    restart = []
    update: dict[ResourceName, list[str]] = {}
    by_name = {container.name: container for container in containers}
    for container in containers:
        changed = _changes(container) if container.running else frozenset()
        if changed & container.restart_for:
            restart.append(container.name)
            continue
        for resource in PHASES:
            if resource not in changed:
                continue
            queue = update.setdefault(resource, [])
            if _grows(container, resource):
                queue.append(container.name)
            else:
                queue.insert(0, container.name)
    frozen = {resource: tuple(names) for resource, names in update.items()}
    if not restart and not update and not pod.level_changes:
        return ResizePlan()
    error = ""
    if restart or MEMORY in frozen:
        error = _memory_error(containers, frozen.get("memory", ()), pod)
    if error:
        return ResizePlan(restart=tuple(restart), update=frozen, error=error)
    calls = [
        call
        for resource in PHASES
        if resource in frozen or restart or pod.level_changes
        for call in _phase(pod, by_name, resource, frozen)
    ]
    return ResizePlan(restart=tuple(restart), update=frozen, calls=tuple(calls))


def after_update(actuated: Requirements, resource: ResourceName, allocated: Requirements) -> Requirements:
    """Return a container's resources once the update of one resource has succeeded."""
    return Requirements(
        actuated.requests.with_quantity(resource, allocated.requests.get(resource)),
        actuated.limits.with_quantity(resource, allocated.limits.get(resource)),
    )


def restarts_for(container: core.Container, resource: str) -> bool:
    """Return whether the container must restart when this resource changes (its resizePolicy)."""
    for policy in container.resizePolicy:
        if policy.resourceName == resource:
            return policy.restartPolicy == "RestartContainer"
    return False


def _changes(container: ContainerResize) -> frozenset[ResourceName]:
    old, new = container.actuated, container.allocated
    return frozenset(
        resource
        for resource in PHASES
        if old.limits.number(resource) != new.limits.number(resource)
        or old.requests.number(resource) != new.requests.number(resource)
    )


def _grows(container: ContainerResize, resource: ResourceName) -> bool:
    """Return whether the container gets more: the limit decides; the request only where the limit stays."""
    old, new = container.actuated, container.allocated
    limits = old.limits.number(resource), new.limits.number(resource)
    if limits[0] != limits[1]:
        return limits[1] > limits[0]
    return new.requests.number(resource) > old.requests.number(resource)


def _memory_error(containers: Sequence[ContainerResize], updated: Sequence[str], pod: PodResize) -> str:
    """Return why a lower limit would leave too little for the present usage, or "".

    Each message names the pod's usage, as upstream. Source: kubelet 1.36, validateMemoryResizeAction.
    """
    errors = []
    old, new, usage = pod.actuated.memory_limit, pod.allocated.memory_limit, pod.memory_usage
    if new is not None and (old is None or new < old) and new <= usage:
        errors.append(f"attempting to set pod memory limit ({new}) below current usage ({usage})")
    for container in containers:
        limit = container.allocated.limits.number(MEMORY)
        current = container.actuated.limits.number(MEMORY)
        if container.name not in updated or not limit or (current and limit >= current):
            continue
        if limit <= container.memory_usage:
            errors.append(
                f'attempting to set container "{container.name}" memory limit ({limit}) '
                f"below current usage ({usage})"
            )
    if not errors:
        return ""
    text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return f"cannot decrease memory limits: {text}"


def _phase(
    pod: PodResize,
    by_name: dict[str, ContainerResize],
    resource: ResourceName,
    update: dict[ResourceName, tuple[str, ...]],
) -> Iterator[Call]:
    old, new = pod.actuated, pod.allocated
    old_limit, new_limit = _limits(pod, resource)
    weighs = resource == CPU  # a memory request has no cgroup
    if new_limit > old_limit:
        yield from _limit_write(new, resource)
    if weighs and new.cpu_shares > old.cpu_shares:
        yield from _pod_write(Call(call="podCgroup", resource=resource, cpu_shares=new.cpu_shares))
    for name in update.get(resource, ()):
        yield _container_call(by_name[name], resource, memory_done=name in update.get("memory", ()))
    if weighs and new.cpu_shares < old.cpu_shares:
        yield from _pod_write(Call(call="podCgroup", resource=resource, cpu_shares=new.cpu_shares))
    if new_limit < old_limit:
        yield from _limit_write(new, resource)


def _limits(pod: PodResize, resource: ResourceName) -> tuple[int, int]:
    """Return the pod's limit as it is and as it is to be, in the cgroup's units.

    A pod that is to have no limit keeps what it has.
    """
    if resource == CPU:
        old, new = pod.actuated.cpu_quota, pod.allocated.cpu_quota
    else:
        old, new = pod.actuated.memory_limit, pod.allocated.memory_limit
    present = UNLIMITED[resource] if old is None else old
    return present, present if new is None else new


def _limit_write(pod: PodCgroup, resource: ResourceName) -> tuple[Call, ...]:
    if resource == CPU:
        return _pod_write(Call(call="podCgroup", resource=resource, cpu_quota=pod.cpu_quota))
    return _pod_write(Call(call="podCgroup", resource=resource, memory_limit=pod.memory_limit))


def _pod_write(write: Call) -> tuple[Call, ...]:
    """Return a cgroup write of the pod, preceded by the notification of the sandbox."""
    return Call(call="podSandbox", resource=write.resource), write


def _container_call(container: ContainerResize, resource: ResourceName, *, memory_done: bool) -> Call:
    """Return the update of a container.

    It has all values: new ones of this phase and those before, old ones of what is to come.
    """
    cpu = container.allocated if resource == CPU else container.actuated
    memory = container.allocated if memory_done else container.actuated
    return Call(
        call="container",
        container=container.name,
        resource=resource,
        cpu_quota=cpu_quota(cpu.limits.number(CPU)),
        cpu_shares=cpu_shares(cpu.requests.number(CPU)),
        memory_limit=memory.limits.number(MEMORY),
        allocated=container.allocated if container.own is None else container.own,
        inherited=container.inherited,
    )
