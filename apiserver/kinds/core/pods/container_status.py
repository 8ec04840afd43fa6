"""Validation of container statuses: their users and devices (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.validation import field
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_ID_MAX = 2**31 - 1
_ID_PROBLEM = f"must be between 0 and {_ID_MAX}, inclusive"
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_CLAIM_PROBLEM = (
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or"
    " 'claim:<claimName>' if request is empty"
)


def _statuses(
    pod: core.Pod,
) -> Iterator[tuple[str, Sequence[core.ContainerStatus], Sequence[core.Container]]]:
    spec, status = pod.spec, pod.status
    yield "status.containerStatuses", status.containerStatuses, spec.containers
    yield "status.initContainerStatuses", status.initContainerStatuses, spec.initContainers


def users(pod: core.Pod) -> Iterator[Cause]:
    """Linux' users have numbers; a Windows pod has none of them."""
    ephemeral = pod.status.ephemeralContainerStatuses
    lists = [(path, found) for path, found, _ in _statuses(pod)]
    for path, found in (*lists, ("status.ephemeralContainerStatuses", ephemeral)):
        for index, row in enumerate(found):
            if not row.HasField("user") or not row.user.HasField("linux"):
                continue
            at = f"{path}[{index}].linux"
            if pod.spec.os.name == "windows":
                yield field.forbidden(at, "cannot be set for a windows pod")
            else:
                yield from _linux(at, row.user.linux)


def _linux(path: str, user: core.LinuxContainerUser) -> list[Cause]:
    numbers = [(f"{path}.uid", user.uid), (f"{path}.gid", user.gid)]
    numbers += [(f"{path}.supplementalGroups[{i}]", group) for i, group in enumerate(user.supplementalGroups)]
    return [field.invalid(at, number, _ID_PROBLEM) for at, number in numbers if not 0 <= number <= _ID_MAX]


def allocated_resources(pod: core.Pod) -> list[Cause]:
    """Check the health of devices: each must belong to a device that the container requested."""
    errors: list[Cause] = []
    for path, found, containers in _statuses(pod):
        for index, row in enumerate(found):
            for number, resource in enumerate(row.allocatedResourcesStatus):
                at = f"{path}[{index}].allocatedResourcesStatus[{number}]"
                container = next((each for each in containers if each.name == row.name), None)
                if container is not None:
                    errors += _asked_for(f"{at}.name", resource.name, container)
                errors += _health(at, resource)
    problem = "must not be specified in container status"
    return errors + [
        field.forbidden(f"status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus", problem)
        for index, row in enumerate(pod.status.ephemeralContainerStatuses)
        if row.allocatedResourcesStatus
    ]


def _asked_for(path: str, name: str, container: core.Container) -> list[Cause]:
    if not name.startswith("claim:"):
        if name in container.resources.requests:
            return []
        return [field.invalid(path, name, "must match one of the container's resource requests")]
    claims = (
        f"claim:{claim.name}/{claim.request}" if claim.request else f"claim:{claim.name}"
        for claim in container.resources.claims
    )
    return [] if name in claims else [field.invalid(path, name, _CLAIM_PROBLEM)]


def _health(path: str, resource: core.ResourceStatus) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, each in enumerate(resource.resources):
        at = f"{path}.resources[{index}]"
        yield from field.one_of(f"{at}.health", each.health, _HEALTH)
        yield from field.unique(f"{at}.resourceID", each.resourceID, seen)
