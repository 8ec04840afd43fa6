"""The claims that are created for a pod from templates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nominee.machinery.api.claim_templates import POD_CLAIM_NAME
from nominee.machinery.api.objects import has_ended, is_controlled_by
from nominee.machinery.api.pb import core, devices


def created_for(
    pod: core.Pod, reference: str, claims: Iterable[devices.ResourceClaim]
) -> devices.ResourceClaim | None:
    """Return the claim that was created for the reference; the pod's status may not name it yet."""
    for claim in claims:
        if claim.metadata.annotations.get(POD_CLAIM_NAME) == reference and is_controlled_by(claim, pod):
            return claim
    return None


def waits_for_claims(pod: core.Pod) -> bool:
    """Report whether a claim of the pod must still be created."""
    if pod.metadata.HasField("deletionTimestamp") or is_done(pod):
        return False
    named = {status.name for status in pod.status.resourceClaimStatuses}
    return any(
        reference.HasField("resourceClaimTemplateName") and reference.name not in named
        for reference in pod.spec.resourceClaims
    )


def statuses_patch(names: Mapping[str, str]) -> dict[str, object]:
    """Return the patch of the pod's status with the name of the claim of each reference."""
    statuses = [{"name": name, "resourceClaimName": claim} for name, claim in names.items()]
    return {"status": {"resourceClaimStatuses": statuses}}


def requested_claim_names(pod: core.Pod) -> list[str]:
    """Return the names of the claims in the pod's spec, those of templates among them."""
    names = [r.resourceClaimName for r in pod.spec.resourceClaims if r.HasField("resourceClaimName")]
    return names + [
        s.resourceClaimName for s in pod.status.resourceClaimStatuses if s.HasField("resourceClaimName")
    ]


def claim_names(pod: core.Pod) -> list[str]:
    """Return the names of all claims that the pod has, or may have had."""
    names = requested_claim_names(pod)
    if pod.status.HasField("extendedResourceClaimStatus"):
        names.append(pod.status.extendedResourceClaimStatus.resourceClaimName)
    return names


def claims_on_node(pod: core.Pod) -> list[str]:
    """Return the claims (ns/name) of a pod that has a node, [] of another one."""
    if not pod.spec.nodeName:
        return []
    return [f"{pod.metadata.namespace}/{name}" for name in claim_names(pod)]


def is_done(pod: core.Pod) -> bool:
    """Report whether the pod has ended, or will never start."""
    if has_ended(pod):
        return True
    return pod.metadata.HasField("deletionTimestamp") and not pod.spec.nodeName
