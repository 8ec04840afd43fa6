"""Claims that the controllers would make from templates by the time the scheduler sees a pod."""

from __future__ import annotations

from collections.abc import Iterable

from machinery.api.claim_templates import claim_from
from machinery.api.objects import ObjectKey, key_of
from machinery.api.pb import core, devices

_SUFFIX = "00000"  # where the API server puts random letters


def made_for(
    pods: Iterable[core.Pod], templates: Iterable[devices.ResourceClaimTemplate]
) -> list[devices.ResourceClaim]:
    """Makes the claims, and notes them in the pods' status. What has no template stays without."""
    by_key = {key_of(template): template for template in templates}
    made = []
    for pod in pods:
        known = {status.name for status in pod.status.resourceClaimStatuses}
        for reference in pod.spec.resourceClaims:
            key = ObjectKey(pod.metadata.namespace, reference.resourceClaimTemplateName)
            template = by_key.get(key)
            if template is None or reference.name in known:
                continue
            claim = claim_from(template, pod, reference.name)
            claim.metadata.name = claim.metadata.generateName + _SUFFIX
            claim.metadata.uid = f"{key}/{pod.metadata.uid}/{reference.name}"
            pod.status.resourceClaimStatuses.add(name=reference.name, resourceClaimName=claim.metadata.name)
            made.append(claim)
    return made
