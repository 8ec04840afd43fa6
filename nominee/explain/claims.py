"""Create the ResourceClaims that the resource claim controller creates from templates."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.claim_templates import claim_from
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core, devices

_SUFFIX = "00000"  # the API server appends random letters


def create_claims(
    pods: Iterable[core.Pod], templates: Iterable[devices.ResourceClaimTemplate]
) -> list[devices.ResourceClaim]:
    """Create the pods' claims, and record them in the pods' status.

    A pod whose template does not exist gets no claim.
    """
    by_key = {key_of(template): template for template in templates}
    created = []
    for pod in pods:
        existing = {status.name for status in pod.status.resourceClaimStatuses}
        for reference in pod.spec.resourceClaims:
            key = ObjectKey(pod.metadata.namespace, reference.resourceClaimTemplateName)
            template = by_key.get(key)
            if template is None or reference.name in existing:
                continue
            claim = claim_from(template, pod, reference.name)
            claim.metadata.name = claim.metadata.generateName + _SUFFIX
            claim.metadata.uid = f"{key}/{pod.metadata.uid}/{reference.name}"
            pod.status.resourceClaimStatuses.add(name=reference.name, resourceClaimName=claim.metadata.name)
            created.append(claim)
    return created
