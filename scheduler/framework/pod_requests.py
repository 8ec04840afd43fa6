"""Compute a pod's requests with the scheduler's gates and defaults
(`nominee.machinery.resources.pod_resources`).

Most pods have one plain container; its requests are read here directly, which is several times cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nominee.machinery.api.pb import core
from nominee.machinery.resources import pod_resources as resources
from nominee.machinery.resources.quantity import milli, value

# Source: kube-scheduler 1.36, scheduler util, non-zero requests.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
_DEFAULTS: Mapping[str, int] = {"cpu": DEFAULT_MILLI_CPU, "memory": DEFAULT_MEMORY_BYTES}


@dataclass(frozen=True, slots=True)
class ResourceOptions:
    """The gates that change the requests of a pod."""

    in_place_resize: bool = True  # InPlacePodVerticalScaling: status counts
    pod_level: bool = True  # PodLevelResources
    pod_level_resize: bool = True  # InPlacePodLevelResourcesVerticalScaling
    resize_preemption: bool = False  # InPlacePodVerticalScalingSchedulerPreemption: scaling up is an event


def is_plain(pod: core.Pod) -> bool:
    """Return whether the pod has one container and nothing else that counts.

    Overhead, pod-level resources and the status of a resize count. With more containers, fractions of units
    must be summed before they are rounded.
    """
    spec = pod.spec
    return not (
        len(spec.containers) != 1
        or spec.initContainers
        or spec.HasField("resources")
        or spec.overhead
        or pod.status.containerStatuses
        or pod.status.initContainerStatuses
    )


def _one_container(pod: core.Pod, defaults: Mapping[str, int]) -> dict[str, int]:
    requests = pod.spec.containers[0].resources.requests
    total = {
        name: milli(quantity) if name == "cpu" else value(quantity) for name, quantity in requests.items()
    }
    for name, amount in defaults.items():
        total.setdefault(name, amount)
    return total


_NO_DEFAULTS: dict[str, int] = {}


def pod_requests(
    pod: core.Pod,
    options: ResourceOptions,
    *,
    use_status: bool,
    use_desired: bool = True,
    defaults: Mapping[str, int] = _NO_DEFAULTS,
) -> dict[str, int]:
    """Return requests by name: cpu in milli-units, others in units.

    Without `use_desired` only what is allocated and actual counts where the status has it.

    `defaults` replace what a container does not request (cpu and memory, for spreading pods).
    """
    if is_plain(pod):
        return _one_container(pod, defaults)
    return dict(
        resources.pod_requests(
            pod,
            use_status=use_status,
            use_desired=use_desired,
            pod_level=options.pod_level,
            pod_level_status=options.pod_level_resize,
            missing=defaults,
        )
    )


def missing_request_defaults(
    pod: core.Pod, options: ResourceOptions, *, use_status: bool
) -> Mapping[str, int]:
    """Return the defaults for containers of the pod that lack a request.

    A pod with pod-level requests has defaults only for what it requests at neither level.
    Source: kube-scheduler 1.36, framework types, getNonMissingContainerRequests.
    """
    if not options.pod_level or not resources.has_pod_level_requests(pod):
        return _DEFAULTS
    requests = pod_requests(pod, options, use_status=use_status)
    return {name: amount for name, amount in _DEFAULTS.items() if name not in requests}
