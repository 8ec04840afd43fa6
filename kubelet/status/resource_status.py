"""`allocatedResources` and `resources` of a pod's status: of its containers and of the pod as a whole. Pure.

Source: kubelet 1.36, convertToAPIContainerStatuses; KEP-5419, "PodStatus API changes": without pod-level
resources the pod has what its containers have together, and a limit only where each container has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import SHARED_VALUES_MAX, Requirements, ResourceList
from nominee.kubelet.runtime.sandbox import Container, PodSandbox
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import (
    CPU,
    MEMORY,
    amount,
    is_sidecar,
    pod_limits,
    pod_requests,
)
from nominee.machinery.resources.quantity import Format, Quantity

_REQUEST_MIN = "2m"
_LIMIT_MIN = "10m"
"""The least cpu that a container's cgroup can have; less is the same to it."""
_CGROUP = (CPU, MEMORY)
"""What is in force for a pod as a whole without pod-level resources: its cgroup's values."""


def write_resources(
    pod: core.Pod,
    status: core.PodStatus,
    allocated: PodResources,
    sandbox: PodSandbox,
    *,
    pod_level: bool = True,
) -> None:
    """Set both fields of the containers that have run, and with `pod_level` those of the pod itself.

    `status.phase` must be set already. Source: InPlacePodLevelResourcesVerticalScaling (`pod_level`).
    """
    rows: Iterable[core.ContainerStatus] = (*status.initContainerStatuses, *status.containerStatuses)
    for row in rows:
        container = sandbox.get(row.name)
        if container is None or (container.state == "waiting" and not container.crashed):
            continue
        own = allocated.get(row.name) or _in_spec(pod, row.name)
        own.requests.write(row.allocatedResources)
        reported_resources(own, container).write(row.resources)
        row.resources.SetInParent()
    status.ClearField("allocatedResources")
    status.ClearField("resources")
    if not pod_level:
        return
    if allocated.pod is not None and pod.spec.HasField("resources"):
        allocated.pod.requests.write(status.allocatedResources)
        _write(status, sandbox.pod_resources or allocated.pod)
        return
    total(pod, allocated).requests.write(status.allocatedResources)
    if status.phase == "Running":
        in_force = total(pod, sandbox.in_force())
        _write(status, Requirements(in_force.requests.only(_CGROUP), in_force.limits))


def _in_spec(pod: core.Pod, name: str) -> Requirements:
    """Return the resources of a container that cannot be resized: an init container before 1.36."""
    containers = (*pod.spec.initContainers, *pod.spec.containers)
    return next(Requirements.from_message(one.resources) for one in containers if one.name == name)


def reported_resources(allocated: Requirements, container: Container) -> Requirements:
    """Return the resources in the status of a container.

    That is its allocation with cpu and memory as the runtime reports them while the container runs. A limit
    that the runtime does not have yet is shown as it is allocated.
    """
    in_force = container.resources
    if container.state != "running" or in_force == allocated:
        return allocated
    return Requirements(
        _reported(allocated.requests, in_force.requests, _REQUEST_MIN, always=True),
        _reported(allocated.limits, in_force.limits, _LIMIT_MIN, always=False),
    )


def _reported(allocated: ResourceList, in_force: ResourceList, cpu_min: str, *, always: bool) -> ResourceList:
    """Return the allocated quantities with those in force; cpu below the least of a cgroup is that least.

    `always`: the runtime reports cpu also where none is in force.
    """
    if not allocated:
        return allocated
    result, least = allocated, amount(CPU, cpu_min)
    memory, cpu = in_force.get(MEMORY), in_force.get(CPU)
    if memory is not None:
        result = result.with_quantity(MEMORY, memory)
    if cpu is not None and in_force.number(CPU) > least:
        result = result.with_quantity(CPU, cpu)
    elif (always or cpu is not None) and allocated.number(CPU) > least:
        result = result.with_quantity(CPU, cpu_min)
    return result


def _write(status: core.PodStatus, requirements: Requirements) -> None:
    requirements.write(status.resources)
    status.resources.SetInParent()


def total(pod: core.Pod, resources: PodResources) -> Requirements:
    """Return the sum of all containers' resources, as scheduling counts them, without overhead.

    Limits are those of cpu and memory, where each container has one.
    """
    return _total(
        tuple(
            (init, init and is_sidecar(container), _of(container, resources))
            for containers, init in ((pod.spec.initContainers, True), (pod.spec.containers, False))
            for container in containers
        )
    )


def _of(container: core.Container, resources: PodResources) -> Requirements:
    return resources.get(container.name) or Requirements.from_message(container.resources)


@lru_cache(SHARED_VALUES_MAX)
def _total(rows: tuple[tuple[bool, bool, Requirements], ...]) -> Requirements:
    """Sum up one row (init container, sidecar, requirements) for each container, in the order of the spec."""
    pod = core.Pod()
    for init, sidecar, requirements in rows:
        container = (pod.spec.initContainers if init else pod.spec.containers).add()
        if sidecar:
            container.restartPolicy = "Always"
        requirements.write(container.resources)
    limited = [name for name in _CGROUP if all(row.limits.number(name) for _, _, row in rows)]
    return Requirements(
        _named(pod_requests(pod), (row.requests for _, _, row in rows)),
        _named(pod_limits(pod), (row.limits for _, _, row in rows)).only(limited),
    )


def _named(totals: Mapping[str, int], parts: Iterable[ResourceList]) -> ResourceList:
    """Return the totals as quantities, each in the format of the first part that has the resource."""
    formats: dict[str, Format] = {}
    for part in parts:
        for name, text in part:
            formats.setdefault(name, Quantity.parse(text).format)
    return ResourceList.of({name: _text(name, number, formats[name]) for name, number in totals.items()})


def _text(name: str, number: int, format_: Format) -> str:
    """`number` is in milli-units for cpu, else in units."""
    quantity = Quantity.of_milli(number, format_) if name == CPU else Quantity.of(number, format_)
    return quantity.canonical()
