"""Find the ResourceClaims of a pod, and whether it may use them.

Source: k8s.io/dynamic-resource-allocation/resourceclaim 1.36.
"""

from __future__ import annotations

from collections.abc import Callable

from nominee.machinery.api.objects import is_controlled_by
from nominee.machinery.api.pb import core, devices

RESERVED_MAX = 256
Claim = devices.ResourceClaim


class ClaimError(Exception):
    """A pod cannot use a claim (yet); the text has the reason."""


class BindingFailedError(ClaimError):
    """A device's driver says that it cannot be prepared."""


class BindingTimeoutError(ClaimError):
    """A device was not prepared in time."""


def claim_name(pod: core.Pod, reference: core.PodResourceClaim) -> tuple[str | None, bool]:
    """Return the claim's name, and whether it must have been created for the pod. None: none was needed.

    Raises:
        ClaimError: the claim of a template has not been created yet.
    """
    if reference.HasField("resourceClaimName"):
        return reference.resourceClaimName, False
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if not reference.HasField("resourceClaimTemplateName"):
        text = "none of the supported fields are set"
        raise ClaimError(f'pod "{key}", spec.resourceClaim "{reference.name}": {text}')
    for status in pod.status.resourceClaimStatuses:
        if status.name == reference.name:
            return (status.resourceClaimName if status.HasField("resourceClaimName") else None), True
    raise ClaimError(f'pod "{key}": ResourceClaim not created yet')


def claims_of(pod: core.Pod, find: Callable[[str, str], Claim | None]) -> list[Claim]:
    """Return all of the pod's claims in order; `find(name, namespace)`.

    Raises:
        ClaimError: a claim is missing or is not the pod's.
    """
    namespace = pod.metadata.namespace
    claims = []
    for reference in pod.spec.resourceClaims:
        name, must_own = claim_name(pod, reference)
        if name is None:
            continue
        claim = find(name, namespace)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{namespace}/{name}"')
        if claim.metadata.HasField("deletionTimestamp"):
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        if must_own and not is_controlled_by(claim, pod):
            where = f"{namespace}/{name} was not created for pod {namespace}/{pod.metadata.name}"
            raise ClaimError(f"ResourceClaim {where} (pod is not owner)")
        claims.append(claim)
    return claims


def is_allocated(claim: Claim) -> bool:
    return claim.status.HasField("allocation")


def is_reserved_for(claim: Claim, uid: str) -> bool:
    return any(reference.uid == uid for reference in claim.status.reservedFor)


def can_be_reserved(claim: Claim) -> bool:
    """Return whether the claim may be reserved: allocated claims are shared, up to a limit."""
    return len(claim.status.reservedFor) < RESERVED_MAX
