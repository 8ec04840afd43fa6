"""A pod's requests and limits, computed in one place for every component.

`Resources` maps resource names to whole numbers: cpu in milli-units, all others in units (bytes, counts).
Sums are exact and rounded up once at the end, as quantities are. Source: component-helpers' resource package
of 1.36.2; KEP-753 (sidecars), KEP-2837 (pod level), KEP-1287 (in-place resize).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources.quantity import Quantity, milli, value

if TYPE_CHECKING:
    from fractions import Fraction

Resources = dict[str, int]

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
HUGE_PAGES_PREFIX = "hugepages-"
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
EMULATED_EPHEMERAL_STORAGE = "100Gi"
"""What an emulated node has where nothing else is asked for."""
RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"
DEFERRED = "Deferred"

# While adding up: a number is an int, or a Fraction where a quantity is no whole number of our unit.
_Sum = dict[str, "int | Fraction"]
_ResourceList = Mapping[str, resource.Quantity]


def amount(name: str, quantity: resource.Quantity | str) -> int:
    """Return one quantity in the resource's unit (cpu: milli), rounded up.

    Raises:
        QuantityError: the quantity cannot be read.
    """
    return milli(quantity) if name == CPU else value(quantity)


def from_list(resource_list: _ResourceList) -> Resources:
    """Return a resource list of the API (`status.allocatable`, `spec.overhead`, ...) in whole numbers."""
    return {name: amount(name, quantity) for name, quantity in resource_list.items()}


def node_allocatable(node: core.Node) -> Resources:
    """Return a node's allocatable: cpu in milli-units, memory in bytes, `pods` as a count."""
    return from_list(node.status.allocatable)


def is_extended(name: str) -> bool:
    """Return whether it is a resource of a domain of its own, as `example.com/gpu`, and no quota's name."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_extended_or_device_class(name: str) -> bool:
    """Return whether devices may provide the resource (KEP-5004): also one named after a DeviceClass."""
    return name.startswith(DEVICE_CLASS_PREFIX) or is_extended(name)


def is_pod_level_resource(name: str) -> bool:
    """Return whether a resource may be set for the pod as a whole (KEP-2837)."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def has_pod_level_requests(pod: core.Pod) -> bool:
    return any(is_pod_level_resource(name) for name in pod.spec.resources.requests)


def has_pod_level_limits(pod: core.Pod) -> bool:
    return any(is_pod_level_resource(name) for name in pod.spec.resources.limits)


def has_pod_level_resources(pod: core.Pod) -> bool:
    return has_pod_level_requests(pod) or has_pod_level_limits(pod)


def resize_pending_reason(pod: core.Pod) -> str:
    """Return the reason of the first PodResizePending condition, whatever its status, or ""."""
    for condition in pod.status.conditions:
        if condition.type == RESIZE_PENDING:
            return condition.reason
    return ""


def is_resize_infeasible(pod: core.Pod) -> bool:
    return resize_pending_reason(pod) == INFEASIBLE


def is_resize_deferred(pod: core.Pod) -> bool:
    """Return whether the pod's resize waits for room on its node (component-helpers, IsPodResizeDeferred)."""
    return resize_pending_reason(pod) == DEFERRED


def is_sidecar(container: core.Container) -> bool:
    """Return whether an init container keeps running beside the others (KEP-753)."""
    return container.restartPolicy == "Always"


@lru_cache(maxsize=65536)
def _exact(is_cpu: bool, text: str) -> int | Fraction:
    quantity = Quantity.parse(text)
    number = milli(text) if is_cpu else value(text)
    whole = Quantity.of_milli(number) if is_cpu else Quantity.of(number)
    if whole == quantity:
        return number
    from fractions import Fraction  # imports decimal: 0.5 MiB that few processes need

    return Fraction(quantity.decimal()) * (1000 if is_cpu else 1)


def _read(resource_list: _ResourceList) -> _Sum:
    return {name: _exact(name == CPU, quantity.string) for name, quantity in resource_list.items()}


def _add(total: _Sum, more: Mapping[str, int | Fraction]) -> None:
    for name, number in more.items():
        total[name] = total.get(name, 0) + number


def _raise_to(total: _Sum, other: Mapping[str, int | Fraction]) -> None:
    for name, number in other.items():
        if name not in total or number > total[name]:
            total[name] = number


def _whole(total: _Sum) -> Resources:
    return {
        name: number if isinstance(number, int) else -(-number.numerator // number.denominator)
        for name, number in total.items()
    }


_Effective = Callable[[core.Container, core.ContainerStatus | None], _Sum]


def _aggregate(pod: core.Pod, effective: _Effective, use_status: bool) -> _Sum:
    """Return the maximum of the sum of containers and sidecars and the peak of the init phase.

    While the i-th init container runs, so do the sidecars before it. The status of an ordinary init
    container never counts.
    """
    statuses: dict[str, core.ContainerStatus] = {}
    if use_status:
        statuses = {status.name: status for status in pod.status.containerStatuses}
        statuses |= {status.name: status for status in pod.status.initContainerStatuses}
    total: _Sum = {}
    for container in pod.spec.containers:
        _add(total, effective(container, statuses.get(container.name)))
    if not pod.spec.initContainers:
        return total
    sidecars: _Sum = {}
    init_peak: _Sum = {}
    for container in pod.spec.initContainers:
        if is_sidecar(container):
            own = effective(container, statuses.get(container.name))
            _add(total, own)
            _add(sidecars, own)
            _raise_to(init_peak, sidecars)
        else:
            during = effective(container, None)
            _add(during, sidecars)
            _raise_to(init_peak, during)
    _raise_to(total, init_peak)
    return total


def container_requests(
    container: core.Container, status: core.ContainerStatus | None, *, infeasible: bool
) -> Resources:
    """Return one container's effective requests, see `pod_requests`."""
    return _whole(_container_requests(container, status, infeasible))


def _container_requests(
    container: core.Container, status: core.ContainerStatus | None, infeasible: bool
) -> _Sum:
    desired = _read(container.resources.requests)
    if status is None or not status.HasField("resources"):
        return desired
    effective = {} if infeasible else desired
    _raise_to(effective, _read(status.resources.requests))
    _raise_to(effective, _read(status.allocatedResources))
    return effective


def _pod_level_requests(pod: core.Pod, use_status: bool, use_desired: bool) -> _Sum:
    desired = _read(pod.spec.resources.requests)
    status = pod.status
    if not use_status or not (status.HasField("resources") or status.allocatedResources):
        return desired
    effective = {} if not use_desired or is_resize_infeasible(pod) else desired
    _raise_to(effective, _read(status.resources.requests))
    _raise_to(effective, _read(status.allocatedResources))
    return effective


_NOTHING_MISSING: Mapping[str, int] = {}


def pod_requests(
    pod: core.Pod,
    *,
    use_status: bool = False,
    use_desired: bool = True,
    pod_level: bool = True,
    pod_level_status: bool = False,
    container_level: bool = True,
    overhead: bool = True,
    missing: Mapping[str, int] = _NOTHING_MISSING,
) -> Resources:
    """Return the requests that a node counts for the pod.

    `use_status` (InPlacePodVerticalScaling): a container whose status has `resources` counts for the most
    of desired, allocated and actual; a desire that is Infeasible does not count, and none does without
    `use_desired`, as when a kubelet counts other pods (KEP-1287). `pod_level`
    (PodLevelResources): requests of the pod as a whole replace the sum, resource by resource; limits alone
    do not. `pod_level_status` (InPlacePodLevelResourcesVerticalScaling, with `use_status`): the same
    maximum there. `missing`: what a container counts for that does not request the resource.

    Raises:
        QuantityError: a quantity cannot be read.
    """
    total: _Sum = {}
    if container_level:
        infeasible = use_status and (not use_desired or is_resize_infeasible(pod))

        def effective(container: core.Container, status: core.ContainerStatus | None) -> _Sum:
            requests = _container_requests(container, status, infeasible)
            for name, number in missing.items():
                requests.setdefault(name, number)
            return requests

        total = _aggregate(pod, effective, use_status)
    if pod_level and has_pod_level_requests(pod):
        requests = _pod_level_requests(pod, use_status and pod_level_status, use_desired)
        total |= {name: number for name, number in requests.items() if is_pod_level_resource(name)}
    if overhead:
        _add(total, _read(pod.spec.overhead))
    return _whole(total)


def pod_limits(
    pod: core.Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    pod_level_status: bool = False,
    overhead: bool = True,
) -> Resources:
    """Return the pod's limits; arguments as for `pod_requests`. Overhead counts only beside a limit."""
    infeasible = use_status and is_resize_infeasible(pod)

    def effective(container: core.Container, status: core.ContainerStatus | None) -> _Sum:
        desired = _read(container.resources.limits)
        if status is None or not status.HasField("resources"):
            return desired
        limits = {} if infeasible else desired
        _raise_to(limits, _read(status.resources.limits))
        return limits

    total = _aggregate(pod, effective, use_status)
    if pod_level and has_pod_level_resources(pod):
        limits = _read(pod.spec.resources.limits)
        if use_status and pod_level_status and pod.status.HasField("resources"):
            limits = {} if infeasible else limits
            _raise_to(limits, _read(pod.status.resources.limits))
        total |= {name: number for name, number in limits.items() if is_pod_level_resource(name)}
    if overhead:
        for name, number in _read(pod.spec.overhead).items():
            if total.get(name):
                total[name] += number
    return _whole(total)


def add(one: Mapping[str, int], other: Mapping[str, int]) -> Resources:
    """Return the sum by name."""
    total = dict(one)
    for name, number in other.items():
        total[name] = total.get(name, 0) + number
    return total


def subtract(one: Mapping[str, int], other: Mapping[str, int]) -> Resources:
    """Return the difference by name; it may be negative."""
    total = dict(one)
    for name, number in other.items():
        total[name] = total.get(name, 0) - number
    return total


def covers(free: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    """Return whether each wanted number is free. Zero of a resource always fits."""
    return all(number <= 0 or number <= free.get(name, 0) for name, number in wanted.items())
