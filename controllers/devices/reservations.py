"""What becomes of a claim whose pods have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from machinery.api.objects import controller_of
from machinery.api.pb import core, devices

FINALIZER = "resource.kubernetes.io/delete-protection"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write: the new status, whether the finalizer goes, whether the claim itself does."""

    status: devices.ResourceClaim | None = None
    drops_finalizer: bool = False
    deletes: bool = False


def plan(
    claim: devices.ResourceClaim,
    is_live: Callable[[devices.ResourceClaimConsumerReference], bool],
    owner_is_done: bool,
) -> Plan:
    """`is_live`: whether a consumer exists and has not ended; `owner_is_done`: the pod it was made for.

    Without consumers an allocation is given up, so that others get the devices.
    """
    users = [reference for reference in claim.status.reservedFor if is_live(reference)]
    ours = FINALIZER in claim.metadata.finalizers
    terminating = claim.metadata.HasField("deletionTimestamp")
    new: devices.ResourceClaim | None = None
    if len(users) < len(claim.status.reservedFor) or (terminating and ours and not users):
        new = devices.ResourceClaim()
        new.CopyFrom(claim)
        del new.status.reservedFor[:]
        new.status.reservedFor.extend(users)
        if not users and ours:
            new.status.ClearField("allocation")
            new.status.ClearField("devices")
        if new.status == claim.status:
            new = None
    freed = ours and not users and not (new or claim).status.HasField("allocation")
    drops = freed and (new is not None or terminating)
    return Plan(new, drops, deletes=owner_is_done and not users and not terminating)


def owning_pod(claim: devices.ResourceClaim) -> tuple[str, str]:
    """Name and uid of the pod that the claim was made for; empty without one."""
    owner = controller_of(claim)
    if owner is None or owner.kind != "Pod" or owner.apiVersion != "v1":
        return "", ""
    return owner.name, owner.uid


def without_finalizer(claim: devices.ResourceClaim) -> devices.ResourceClaim:
    new = devices.ResourceClaim()
    new.CopyFrom(claim)
    new.metadata.finalizers.remove(FINALIZER)
    return new


def reserves_itself(pod: core.Pod, claim: devices.ResourceClaim) -> bool:
    """A pod that came to its node without the scheduler reserves its allocated claims here."""
    return bool(
        pod.spec.nodeName
        and claim.status.HasField("allocation")
        and all(reference.uid != pod.metadata.uid for reference in claim.status.reservedFor)
    )
