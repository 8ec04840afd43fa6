"""Pod-level resources, compared with those of the containers (kube-apiserver 1.36, KEP-2837)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.validation import field
from nominee.apiserver.validation.values import quantities
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.defaults.pod import container_requests
from nominee.machinery.resources.quantity import Quantity


def pod_resources(path: str, spec: core.PodSpec) -> list[Cause]:
    """Check resources of a pod as a whole against those of its containers (KEP-2837)."""
    resources = spec.resources
    errors: list[Cause] = []
    if resources.claims:
        errors.append(field.forbidden(f"{path}.claims", "claims cannot be set for Resources at pod-level"))
    errors += quantities.requirements(path, resources.requests, resources.limits, pod_level=True)
    return [*errors, *_requests(path, spec), *_limits(path, spec)]


def _requests(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    requests = spec.resources.requests
    asked = {
        name
        for container in (*spec.containers, *spec.initContainers)
        for name in container.resources.requests
    }
    for name in sorted(asked):
        total = container_requests(spec, name)
        own = requests[name].string if name in requests else "0"
        if total is not None and total > Quantity.parse(own):
            problem = f"must be greater than or equal to aggregate container requests of {total}"
            yield field.invalid(f"{path}.requests[{name}]", own, problem)


def _limits(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    most = spec.resources.limits
    for index, container in enumerate(spec.containers):
        limits = container.resources.limits
        for name in sorted(limits):
            if name in most and Quantity.parse(limits[name].string) > Quantity.parse(most[name].string):
                # The path is upstream's, though no such field is there.
                at = f"{path}.containers[{index}][{name}].limits"
                problem = f"must be less than or equal to pod limits of {most[name].string}"
                yield field.invalid(at, limits[name].string, problem)
