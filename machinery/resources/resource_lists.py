"""Lists of quantities by resource name, and the total of a pod's containers.

Unlike machinery.resources.pod_resources these keep the quantities as they are written, since messages show
them. Source: Kubernetes 1.36, component-helpers/resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources.pod_resources import (
    is_pod_level_resource,
    is_resize_infeasible,
    is_sidecar,
)
from nominee.machinery.resources.quantity import Quantity

Amounts = dict[str, Quantity]
Side = Literal["requests", "limits"]
_ZERO = Quantity.parse("0")


def read(resource_list: Mapping[str, resource.Quantity]) -> Amounts:
    """Return the amounts of a message's map."""
    return {name: Quantity.parse(resource_list[name].string) for name in resource_list}


def write(found: Mapping[str, Quantity], resource_list: Mapping[str, resource.Quantity]) -> None:
    """Write amounts into a message's map, which should be empty."""
    for name, quantity in found.items():
        resource_list[name].string = str(quantity)


def add(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Amounts:
    """Return the sum by name; a name that only one has counts as it is."""
    total = dict(one)
    for name, quantity in other.items():
        total[name] = total[name] + quantity if name in total else quantity
    return total


def subtract(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Amounts:
    """Return the difference by name, never below zero; a name that only `other` has is zero."""
    left = {name: max(_ZERO, one[name] - other.get(name, _ZERO)) for name in one}
    return left | {name: _ZERO for name in other if name not in one}


def greatest(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Amounts:
    """Return the greater of two by name."""
    found = dict(one)
    for name, quantity in other.items():
        if name not in found or found[name] < quantity:
            found[name] = quantity
    return found


def only(found: Mapping[str, Quantity], names: Iterable[str]) -> Amounts:
    """Return the amounts of such names, in the names' order."""
    return {name: found[name] for name in names if name in found}


def of_pod(
    pod: core.Pod,
    side: Side,
    *,
    pod_level: bool = True,
    overhead: bool = False,
    use_status: bool = False,
) -> Amounts:
    """Return the pod's requests or limits: the containers' sum, or the peak of the init containers.

    Limits count the overhead only where there is a limit to add it to. With `use_status` a container whose
    status has `resources` counts as in machinery.resources.pod_resources.
    """
    spec = pod.spec
    statuses: dict[str, core.ContainerStatus] = {}
    if use_status:
        rows = (*pod.status.containerStatuses, *pod.status.initContainerStatuses)
        statuses = {row.name: row for row in rows if row.HasField("resources")}
    infeasible = bool(statuses) and is_resize_infeasible(pod)
    total: Amounts = {}
    for container in spec.containers:
        total = add(total, _effective(container, statuses.get(container.name), side, infeasible))
    beside: Amounts = {}
    starting: Amounts = {}
    for container in spec.initContainers:
        status = statuses.get(container.name) if is_sidecar(container) else None
        own = _effective(container, status, side, infeasible)
        if is_sidecar(container):
            total, beside = add(total, own), add(beside, own)
            own = beside
        else:
            own = add(own, beside)
        starting = greatest(starting, own)
    total = greatest(total, starting)
    if pod_level and spec.HasField("resources"):
        whole = read(getattr(spec.resources, side))
        total |= {name: whole[name] for name in whole if is_pod_level_resource(name)}
    if overhead and spec.overhead:
        more = read(spec.overhead)
        total = add(total, more if side == "requests" else only(more, [n for n in more if n in total]))
    return total


def _effective(
    container: core.Container, status: core.ContainerStatus | None, side: Side, infeasible: bool
) -> Amounts:
    """Return the most of desired, actual and allocated; a desire that is Infeasible does not count."""
    desired = read(getattr(container.resources, side))
    if status is None:
        return desired
    found = greatest({} if infeasible else desired, read(getattr(status.resources, side)))
    return greatest(found, read(status.allocatedResources)) if side == "requests" else found
