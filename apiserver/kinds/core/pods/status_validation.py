"""A pod's status as PUT to the subresource (kube-apiserver 1.36, ValidatePodStatusUpdate)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.core.pods import container_status
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.pods import annotations as pod_annotations
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates
from nominee.machinery.resources.pod_resources import is_resize_deferred

NON_NEGATIVE = "must be a non-negative integer"
_BOUND = "may not be set on pods that are already bound to a node"
_SYSTEM_CONDITIONS = frozenset({
    "ContainersReady", "Ready", "PodScheduled", "Initialized", "PodReadyToStartContainers",
    "DisruptionTarget", "PodResizePending", "PodResizeInProgress", "AllContainersRestarting"})  # fmt: skip


def update(
    new: core.Pod, old: core.Pod, gates: Gates, *, nominates_deferred_resizes: bool = False
) -> list[Cause]:
    """Check a changed status (ValidatePodStatusUpdate).

    `nominates_deferred_resizes`: a bound pod whose resize is deferred may be nominated to its own node, which
    upstream refuses (KEP-5836, "Option 3: Reuse NominatedNodeName"; docs/design/017-resize-preemption.md).
    """
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    errors += pod_annotations.update(new, old)
    status, before = new.status, old.status
    errors += _conditions("status.conditions", status.conditions)
    nominated = status.nominatedNodeName
    if nominated:
        path = "status.nominatedNodeName"
        errors += field.check(path, nominated, names.dns_subdomain)
        if (
            new.spec.nodeName
            and nominated != before.nominatedNodeName
            and gates.enabled("ClearingNominatedNodeNameAfterBinding")
            and not (nominates_deferred_resizes and _nominated_for_resize(new))
        ):
            errors.append(field.forbidden(path, _BOUND))
    if before.qosClass and status.qosClass != before.qosClass:
        errors.append(field.invalid("status.qosClass", status.qosClass, field.IMMUTABLE))
    errors += _restarts(
        "status.containerStatuses", status.containerStatuses, before.containerStatuses, old.spec
    )
    errors += _init_restarts(
        "status.initContainerStatuses", status.initContainerStatuses, before.initContainerStatuses, old.spec
    )
    errors += _ephemeral_restarts(status.ephemeralContainerStatuses, before.ephemeralContainerStatuses)
    errors += _claims(new)
    errors += _addresses("status.podIPs", [address.ip for address in status.podIPs])
    if status.hostIPs:
        if status.hostIP != status.hostIPs[0].ip:
            at = "status.hostIPs[0].ip"
            errors.append(field.invalid(at, status.hostIPs[0].ip, "must be equal to `hostIP`"))
        errors += _addresses("status.hostIPs", [address.ip for address in status.hostIPs])
    errors += container_status.users(new)
    errors += container_status.allocated_resources(new)
    if status.observedGeneration < 0:
        errors.append(field.invalid("status.observedGeneration", status.observedGeneration, NON_NEGATIVE))
    return errors


def _nominated_for_resize(pod: core.Pod) -> bool:
    return pod.status.nominatedNodeName == pod.spec.nodeName and is_resize_deferred(pod)


def _claims(pod: core.Pod) -> list[Cause]:
    """The claims that were made for a pod are of those that its spec names."""
    errors: list[Cause] = []
    known = {claim.name for claim in pod.spec.resourceClaims}
    seen: set[str] = set()
    for index, claim in enumerate(pod.status.resourceClaimStatuses):
        at = f"status.resourceClaimStatuses[{index}]"
        if claim.name not in known:
            problem = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(field.invalid(f"{at}.name", claim.name, problem))
        errors += field.unique(f"{at}.name", claim.name, seen)
        if claim.HasField("resourceClaimName"):
            errors += field.check(f"{at}.name", claim.resourceClaimName, names.dns_subdomain)
    return errors


def _conditions(path: str, conditions: Sequence[core.PodCondition]) -> Iterator[Cause]:
    for index, condition in enumerate(conditions):
        if condition.observedGeneration < 0:
            yield field.invalid(
                f"{path}[{index}].observedGeneration", condition.observedGeneration, NON_NEGATIVE
            )
        if condition.type not in _SYSTEM_CONDITIONS:
            at = f"{path}[{index}].Type"
            yield from field.check(at, condition.type, names.qualified_name)


_NO_RESTART = "may not be transitioned to non-terminated state"


def _restarts(
    path: str, new: Sequence[core.ContainerStatus], old: Sequence[core.ContainerStatus], spec: core.PodSpec
) -> Iterator[Cause]:
    """A container that ended may run again only where its restart policy says so."""
    if spec.restartPolicy == "Always":
        return
    policies = {container.name: container for container in spec.containers}
    for index, before in enumerate(old):
        if not before.state.HasField("terminated"):
            continue
        container = policies.get(before.name)
        policy = container.restartPolicy if container and container.restartPolicy else spec.restartPolicy
        if policy == "Always" or (before.state.terminated.exitCode != 0 and policy == "OnFailure"):
            continue
        if container is not None and container.restartPolicyRules:
            continue
        yield from _left_terminated(path, index, before, new)


def _left_terminated(
    path: str, index: int, before: core.ContainerStatus, new: Sequence[core.ContainerStatus]
) -> list[Cause]:
    return [
        field.forbidden(f"{path}[{index}].state", _NO_RESTART)
        for status in new
        if status.name == before.name and not status.state.HasField("terminated")
    ]


def _init_restarts(
    path: str, new: Sequence[core.ContainerStatus], old: Sequence[core.ContainerStatus], spec: core.PodSpec
) -> Iterator[Cause]:
    if spec.restartPolicy == "Always":
        return
    sidecars = {container.name for container in spec.initContainers if container.restartPolicy == "Always"}
    for index, before in enumerate(old):
        if not before.state.HasField("terminated") or before.name in sidecars:
            continue
        if before.state.terminated.exitCode != 0 and spec.restartPolicy == "OnFailure":
            continue
        yield from _left_terminated(path, index, before, new)


def _ephemeral_restarts(
    new: Sequence[core.ContainerStatus], old: Sequence[core.ContainerStatus]
) -> list[Cause]:
    """These never run again."""
    return [
        cause
        for index, before in enumerate(old)
        if before.state.HasField("terminated")
        for cause in _left_terminated("status.ephemeralContainerStatuses", index, before, new)
    ]


def _addresses(path: str, listed: list[str]) -> list[Cause]:
    """Of a pod or its host: one of each family at most."""
    errors = [
        cause
        for index, address in enumerate(listed)
        for cause in addresses.ip_address(f"{path}[{index}]", address)
    ]
    if len(listed) < 2:
        return errors
    parsed = [addresses.parse(address) for address in listed]
    known = {address.version for address in parsed if address is not None}
    if None not in parsed and (len(known) < 2 or len(listed) > 2):
        problem = "may specify no more than one IP for each IP family"
        errors.append(field.invalid(path, [{"IP": address} for address in listed], problem))
    return errors
