"""What a pod requests, for the scheduler: `machinery.resources` with the scheduler's gates and defaults.

Most pods have plain containers only; their requests are summed here directly, which is several times cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from machinery.pb import core
from machinery.quantity import milli, value

if TYPE_CHECKING:
    from scheduler.framework.types import ResourceOptions

# Source: kube-scheduler 1.36, scheduler util, non-zero requests.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024


def _is_plain(pod: core.Pod) -> bool:
    """Neither init containers, overhead, pod-level resources nor a status that could tell of a resize."""
    spec = pod.spec
    return not (
        spec.initContainers
        or spec.HasField("resources")
        or spec.overhead
        or pod.status.containerStatuses
        or pod.status.initContainerStatuses
    )


def _sum_containers(pod: core.Pod, defaults: Mapping[str, int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        requests = container.resources.requests
        seen = 0
        for name, quantity in requests.items():
            amount = milli(quantity) if name == "cpu" else value(quantity)
            total[name] = total.get(name, 0) + amount
            seen += name in defaults
        if seen < len(defaults):
            for name, amount in defaults.items():
                if name not in requests:
                    total[name] = total.get(name, 0) + amount
    return total


_NO_DEFAULTS: dict[str, int] = {}


def pod_requests(
    pod: core.Pod,
    options: ResourceOptions,
    *,
    use_status: bool,
    defaults: Mapping[str, int] = _NO_DEFAULTS,
) -> dict[str, int]:
    """Requests by name: cpu in milli-units, others in units.

    `defaults` stand in for what a container does not request (cpu and memory, for spreading pods).
    """
    if _is_plain(pod):
        return _sum_containers(pod, defaults)
    from machinery import resources

    return dict(
        resources.pod_requests(
            pod,
            use_status=use_status,
            pod_level=options.pod_level,
            pod_level_status=options.pod_level_resize,
            missing=defaults,
        )
    )


def missing_request_defaults(pod: core.Pod, options: ResourceOptions) -> dict[str, int]:
    """The defaults that apply to the pod: none for what it requests at pod level."""
    defaults = {"cpu": DEFAULT_MILLI_CPU, "memory": DEFAULT_MEMORY_BYTES}
    if options.pod_level and pod.spec.HasField("resources"):
        for name in list(defaults):
            if name in pod.spec.resources.requests:
                del defaults[name]
    return defaults
