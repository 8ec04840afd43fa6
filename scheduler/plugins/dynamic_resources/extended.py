"""Provide extended resources (`example.com/gpu: 1`) by devices instead of a device plugin (KEP-5004).

A DeviceClass names the resource it provides. A pod that requests it gets a claim that the scheduler itself
creates, with one request per container and resource; where a node has the resource by a device plugin, that
is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nominee.machinery.api.objects import owner_reference
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import value
from nominee.scheduler.plugins.dynamic_resources.class_map import ClassMap, is_extended
from nominee.scheduler.plugins.dynamic_resources.pod_claims import Claim

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
IN_MEMORY_NAME = "<extended-resources>"


@dataclass(frozen=True, slots=True)
class Asked:
    """One container's request of one resource that a class stands for."""

    resource: str
    request_name: str
    container: str
    class_name: str
    count: int


def asked_by(pod: core.Pod, classes: ClassMap) -> list[Asked]:
    """Return all requests, by resource and then container; they are named after their places."""
    if not classes:
        return []
    found = []
    for number, container in enumerate((*pod.spec.initContainers, *pod.spec.containers)):
        requests: Mapping[str, object] = container.resources.requests
        for position, resource in enumerate(sorted(requests)):
            class_name = classes.get(resource)
            if class_name is None or not is_extended(resource):
                continue
            count = value(requests[resource])  # type: ignore[arg-type]
            if count:
                name = f"container-{number}-request-{position}"
                found.append(Asked(resource, name, container.name, class_name, count))
    return sorted(found, key=lambda asked: asked.resource)


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


def claim_for_node(template: Claim, asked: Iterable[Asked], allocatable: Iterable[str]) -> Claim | None:
    """Return the claim for resources that no device plugin of the node has; None: it lacks nothing."""
    plugged = set(allocatable)
    wanted = [one for one in asked if one.resource not in plugged]
    if not wanted:
        return None
    claim = Claim()
    claim.CopyFrom(template)
    for one in wanted:
        request = claim.spec.devices.requests.add(name=one.request_name)
        request.exactly.deviceClassName = one.class_name
        request.exactly.allocationMode = "ExactCount"
        request.exactly.count = one.count
    return claim


def pod_status_of(claim: Claim, asked: Iterable[Asked]) -> dict[str, object]:
    """Return a patch of the pod's status, for the kubelet: which request serves which container."""
    names = {request.name for request in claim.spec.devices.requests}
    mappings = [
        {"containerName": one.container, "resourceName": one.resource, "requestName": one.request_name}
        for one in asked
        if one.request_name in names
    ]
    status = {"resourceClaimName": claim.metadata.name, "requestMappings": mappings}
    return {"status": {"extendedResourceClaimStatus": status}}
