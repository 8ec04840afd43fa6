"""Quality-of-service classes: Guaranteed, Burstable, BestEffort.

Source: Kubernetes 1.36's qos helper; pod-level resources decide where they are set (KEP-2837).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources.pod_resources import CPU, MEMORY, has_pod_level_resources
from nominee.machinery.resources.quantity import Quantity

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

_Requirements = Iterable[core.ResourceRequirements]


def _positive(resource_list: Mapping[str, resource.Quantity]) -> dict[str, Quantity]:
    found = {}
    for name in (CPU, MEMORY):
        if name in resource_list:
            quantity = Quantity.parse(resource_list[name].string)
            if quantity.sign > 0:
                found[name] = quantity
    return found


def _add(total: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    for name, quantity in more.items():
        total[name] = total[name] + quantity if name in total else quantity


def class_of(requirements: _Requirements) -> str:
    """Return the class of these requirements taken together. Only cpu and memory above zero count."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    all_limited = True
    for each in requirements:
        _add(requests, _positive(each.requests))
        own_limits = _positive(each.limits)
        _add(limits, own_limits)
        all_limited = all_limited and len(own_limits) == 2
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if all_limited and requests == limits else BURSTABLE


def qos_class(pod: core.Pod, *, pod_level: bool = True) -> str:
    """Return the class that follows from the spec. `pod_level` is the gate PodLevelResources."""
    if pod_level and has_pod_level_resources(pod):
        return class_of([pod.spec.resources])
    containers = (*pod.spec.containers, *pod.spec.initContainers)
    return class_of(container.resources for container in containers)


def recorded_qos_class(pod: core.Pod, *, pod_level: bool = True) -> str:
    """Return `status.qosClass`, which never changes, or the spec's class before it is written."""
    return pod.status.qosClass or qos_class(pod, pod_level=pod_level)
