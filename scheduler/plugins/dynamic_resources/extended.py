"""Provide extended resources (`example.com/gpu: 1`) by devices instead of a device plugin (KEP-5004).

A DeviceClass names the resource it provides. A pod that requests it gets a claim that the scheduler itself
creates, with one request per container and resource, and at most one for all init containers that end; where
a node has the resource by a device plugin, that is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from nominee.machinery.api.objects import owner_reference
from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources.pod_resources import is_extended_or_device_class
from nominee.machinery.resources.quantity import value
from nominee.scheduler.plugins.dynamic_resources.class_map import ClassMap
from nominee.scheduler.plugins.dynamic_resources.pod_claims import Claim

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
IN_MEMORY_NAME = "<extended-resources>"
Resources = Mapping[str, resource.Quantity]


@dataclass(frozen=True, slots=True)
class Asked:
    """One container's request of one resource that a class stands for."""

    resource: str
    request_name: str
    container: str
    class_name: str
    count: int
    place: int = 0  # of the container, init containers first
    is_short: bool = False  # of an init container that ends before the next one starts


@dataclass(frozen=True, slots=True)
class _Needs:
    """The devices for one resource: (name, class name, count), and (container, name of a request)."""

    requests: tuple[tuple[str, str, int], ...]
    mappings: tuple[tuple[str, str], ...]


def asked_by(pod: core.Pod, classes: ClassMap) -> list[Asked]:
    """Return all requests, by resource and then container; they are named after their places."""
    if not classes:
        return []
    found: list[Asked] = []
    first = len(pod.spec.initContainers)
    for number, container in enumerate((*pod.spec.initContainers, *pod.spec.containers)):
        requests: Resources = container.resources.requests
        for position, name in enumerate(sorted(requests)):
            class_name = classes.get(name)
            if class_name is None or not is_extended_or_device_class(name):
                continue
            count = value(requests[name])
            if count:
                of_request = f"container-{number}-request-{position}"
                is_short = number < first and container.restartPolicy != "Always"
                found.append(Asked(name, of_request, container.name, class_name, count, number, is_short))
    return sorted(found, key=lambda asked: asked.resource)


def _needs_of(asked: Sequence[Asked]) -> _Needs:
    """Return the devices that the containers need of one resource.

    An init container that ends uses the devices of those that start after it; only what these lack is
    requested, once for the one of them that lacks most (createRequestsAndMappings, 1.35).
    """
    long = [one for one in asked if not one.is_short]
    requests = [(one.request_name, one.class_name, one.count) for one in long]
    mappings = [(one.container, one.request_name) for one in long]
    lacking: list[tuple[str, str, int]] = []
    of_short: list[tuple[str, str]] = []
    for one in asked:
        if not one.is_short:
            continue
        left = one.count
        for later in long:
            if left > 0 and later.place > one.place:
                of_short.append((one.container, later.request_name))
                left -= later.count
        if left > 0:
            of_short.append((one.container, one.request_name))
            lacking.append((one.request_name, one.class_name, left))
    if lacking:
        most = max(lacking, key=lambda request: request[2])
        requests.append(most)
        others = {name for name, _, _ in lacking}
        of_short = [(container, most[0] if name in others else name) for container, name in of_short]
    return _Needs(tuple(requests), tuple(mappings + of_short))


def _needs(asked: Iterable[Asked]) -> dict[str, _Needs]:
    """Return the needs by resource, in the order of their names."""
    return {name: _needs_of(list(of)) for name, of in groupby(asked, lambda one: one.resource)}


def new_claim(pod: core.Pod, uid: str) -> Claim:
    """Return the claim before a node is chosen: no requests; the uid is for this process only."""
    claim = Claim()
    metadata = claim.metadata
    metadata.namespace, metadata.name, metadata.uid = pod.metadata.namespace, IN_MEMORY_NAME, uid
    metadata.generateName = f"{pod.metadata.name}-extended-resources-"
    metadata.ownerReferences.append(owner_reference(pod))
    metadata.annotations[ANNOTATION] = "true"
    return claim


def existing_claim(pod: core.Pod, claims: Iterable[Claim]) -> Claim | None:
    """Return the claim that an earlier attempt created for the pod."""
    for claim in claims:
        if claim.metadata.annotations.get(ANNOTATION) != "true":
            continue
        for owner in claim.metadata.ownerReferences:
            if owner.controller and owner.name == pod.metadata.name and owner.uid == pod.metadata.uid:
                return claim
    return None


def claim_for_node(template: Claim, asked: Iterable[Asked], allocatable: Resources) -> Claim | None:
    """Return the claim for resources that no device plugin of the node has; None: it lacks nothing.

    A resource whose device plugin has gone stays in `allocatable`, as 0.
    """
    wanted = [
        one for one in asked if one.resource not in allocatable or value(allocatable[one.resource]) <= 0
    ]
    if not wanted:
        return None
    claim = Claim()
    claim.CopyFrom(template)
    for name, class_name, count in sorted(r for needs in _needs(wanted).values() for r in needs.requests):
        request = claim.spec.devices.requests.add(name=name)
        request.exactly.deviceClassName = class_name
        request.exactly.allocationMode = "ExactCount"
        request.exactly.count = count
    return claim


def pod_status_of(claim: Claim, asked: Iterable[Asked]) -> dict[str, object]:
    """Return a patch of the pod's status, for the kubelet: which request serves which container."""
    names = {request.name for request in claim.spec.devices.requests}
    mappings = [
        {"containerName": container, "resourceName": of, "requestName": name}
        for of, needs in _needs(asked).items()
        for container, name in needs.mappings
        if name in names
    ]
    status = {"resourceClaimName": claim.metadata.name, "requestMappings": mappings}
    return {"status": {"extendedResourceClaimStatus": status}}
