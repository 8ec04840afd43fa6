"""The consumers of a resource claim: those that stay, and the write when their pods have ended. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nominee.controllers.devices.templates import is_done
from nominee.machinery.api.objects import controller_of, copy_of, is_controlled_by
from nominee.machinery.api.pb import core, devices

FINALIZER = "resource.kubernetes.io/delete-protection"


@dataclass(frozen=True, slots=True)
class ClaimWrites:
    """The writes for a claim: its new status, the removal of its finalizer, its deletion."""

    status: devices.ResourceClaim | None = None
    drops_finalizer: bool = False
    deletes: bool = False


def plan(
    claim: devices.ResourceClaim,
    is_live: Callable[[devices.ResourceClaimConsumerReference], bool],
    owner_is_done: bool,
) -> ClaimWrites:
    """Return the writes for a claim; without consumers its allocation is removed, which frees the devices.

    `is_live` reports whether a consumer exists and has not ended; `owner_is_done` is whether the pod that the
    claim was created for has ended.
    """
    consumers = [reference for reference in claim.status.reservedFor if is_live(reference)]
    has_finalizer = FINALIZER in claim.metadata.finalizers
    terminating = claim.metadata.HasField("deletionTimestamp")
    new: devices.ResourceClaim | None = None
    if len(consumers) < len(claim.status.reservedFor) or (terminating and has_finalizer and not consumers):
        new = copy_of(claim)
        del new.status.reservedFor[:]
        new.status.reservedFor.extend(consumers)
        if not consumers and has_finalizer:
            new.status.ClearField("allocation")
            new.status.ClearField("devices")
        if new.status == claim.status:
            new = None
    freed = has_finalizer and not consumers and not (new or claim).status.HasField("allocation")
    drops = freed and (new is not None or terminating)
    return ClaimWrites(new, drops, deletes=owner_is_done and not consumers and not terminating)


def owning_pod(claim: devices.ResourceClaim) -> tuple[str, str]:
    """Return name and uid of the pod that the claim was created for, empty without one."""
    owner = controller_of(claim)
    if owner is None or owner.kind != "Pod" or owner.apiVersion != "v1":
        return "", ""
    return owner.name, owner.uid


def needs_reservation(pod: core.Pod, claim: devices.ResourceClaim) -> bool:
    """Report whether the controller reserves the claim: the pod was bound without the scheduler."""
    return bool(
        pod.spec.nodeName
        and claim.status.HasField("allocation")
        and all(reference.uid != pod.metadata.uid for reference in claim.status.reservedFor)
    )


def reserved_for(pod: core.Pod, claim: devices.ResourceClaim) -> devices.ResourceClaim | None:
    """Return the claim with the pod as one more consumer, None where that is not up to the controller."""
    if not needs_reservation(pod, claim):
        return None
    new = copy_of(claim)
    new.status.reservedFor.add(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
    return new


def is_live(reference: devices.ResourceClaimConsumerReference, pod: core.Pod | None) -> bool:
    """Report whether a consumer exists and has not ended; `pod` has its name now.

    Consumers that are not pods belong to another controller: they count as live.
    """
    if not is_pod(reference):
        return True
    return pod is not None and pod.metadata.uid == reference.uid and not is_done(pod)


def is_pod(reference: devices.ResourceClaimConsumerReference) -> bool:
    return reference.resource == "pods" and not reference.apiGroup


def owner_is_done(claim: devices.ResourceClaim, pod: core.Pod | None) -> bool:
    """Report whether the pod that the claim was created for has ended; `pod` has its name now.

    A claim whose pod is deleted is left to the garbage collector.
    """
    _, uid = owning_pod(claim)
    return pod is not None and (pod.metadata.uid != uid or is_done(pod))


def is_used_by(claim: devices.ResourceClaim, pod: core.Pod) -> bool:
    """Report whether the claim is allocated and reserved for this very pod.

    A claim that was created for another pod of the same name is not the pod's own.
    """
    if not claim.status.HasField("allocation"):
        return False
    if all(consumer.uid != pod.metadata.uid for consumer in claim.status.reservedFor):
        return False
    named = {r.resourceClaimName for r in pod.spec.resourceClaims if r.HasField("resourceClaimName")}
    return claim.metadata.name in named or is_controlled_by(claim, pod)
