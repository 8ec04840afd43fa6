"""How much of its node a pod counts for, in whole numbers.

Works on `PodResources` instead of the spec's own, so that a pod can be counted as it is allocated without
copying it. Millicores for cpu, whole units otherwise. Source: component-helpers' resource.PodRequests, 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from kubelet.pod_resources import PodResources, is_sidecar
from kubelet.requirements import CPU, MEMORY, Requirements, ResourceList, amount_of
from machinery.pb import core, resource

Amounts = dict[str, int]
POD_LEVEL_RESOURCES = frozenset({CPU, MEMORY})


def requested(
    pod: core.Pod, resources: PodResources, *, use_status: bool = False, pod_level: bool = True
) -> Amounts:
    """The pod's requests: containers and sidecars together, or the largest init step if that is more; overhead.

    With `use_status` a container counts for the most of what it is allocated here, what its status says is
    allocated and what its status says it has (KEP-1287, "Scheduler and API Server Interaction"); the first
    of these does not count while the API status calls the resize infeasible.
    """
    infeasible = use_status and _is_infeasible(pod)
    statuses = _statuses(pod) if use_status else {}
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _container(container, resources, statuses, infeasible))
    sidecars: Amounts = {}
    largest_step: Amounts = {}
    for container in pod.spec.initContainers:
        if is_sidecar(container):
            amounts = _container(container, resources, statuses, infeasible)
            _add(total, amounts)
            _add(sidecars, amounts)
            step = sidecars
        else:
            step = dict(sidecars)
            _add(step, _container(container, resources, {}, infeasible))
        _raise_to(largest_step, step)
    _raise_to(total, largest_step)
    if pod_level and resources.pod is not None:
        total.update(_pod_level(pod, resources.pod, use_status, infeasible))
    for name, quantity in pod.spec.overhead.items():
        total[name] = total.get(name, 0) + amount_of(name, quantity.string)
    return total


def _container(
    container: core.Container,
    resources: PodResources,
    statuses: Mapping[str, core.ContainerStatus],
    infeasible: bool,
) -> Amounts:
    requirements = resources.get(container.name)
    if requirements is None:
        requirements = Requirements.from_message(container.resources)
    own = _amounts(requirements.requests)
    status = statuses.get(container.name)
    # A status without `resources` was written by a kubelet that knows no resize: it does not count.
    if status is None or not status.HasField("resources"):
        return own
    seen = _from_message(status.allocatedResources)
    _raise_to(seen, _from_message(status.resources.requests))
    if not infeasible:
        _raise_to(seen, own)
    return seen


def _pod_level(pod: core.Pod, own: Requirements, use_status: bool, infeasible: bool) -> Amounts:
    amounts = {name: amount for name, amount in _amounts(own.requests).items() if name in POD_LEVEL_RESOURCES}
    if not use_status or not pod.status.HasField("resources"):
        return amounts
    seen = _from_message(pod.status.allocatedResources)
    _raise_to(seen, _from_message(pod.status.resources.requests))
    if not infeasible:
        _raise_to(seen, amounts)
    return {name: amount for name, amount in seen.items() if name in amounts}


def _is_infeasible(pod: core.Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _statuses(pod: core.Pod) -> dict[str, core.ContainerStatus]:
    return {
        status.name: status
        for rows in (pod.status.containerStatuses, pod.status.initContainerStatuses)
        for status in rows
    }


def _amounts(quantities: ResourceList) -> Amounts:
    return {name: amount_of(name, text) for name, text in quantities}


def _from_message(quantities: Mapping[str, resource.Quantity]) -> Amounts:
    return {name: amount_of(name, value.string) for name, value in quantities.items()}


def _add(total: MutableMapping[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: MutableMapping[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        if amount > total.get(name, 0):
            total[name] = amount
        else:
            total.setdefault(name, amount)
