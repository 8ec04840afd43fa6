"""The ResourceClaim that a pod's template describes.

Source: kube-controller-manager 1.36, resourceclaim controller.
"""

from __future__ import annotations

from nominee.machinery.api.objects import owner_reference
from nominee.machinery.api.pb import core, devices

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_BASE_LENGTH_MAX = 57  # of a name of 63 characters: a hyphen and five random ones follow


def claim_from(
    template: devices.ResourceClaimTemplate, pod: core.Pod, reference: str
) -> devices.ResourceClaim:
    """Return a new claim of the pod; the API server completes its name."""
    claim = devices.ResourceClaim()
    metadata = claim.metadata
    metadata.namespace = pod.metadata.namespace
    metadata.generateName = f"{pod.metadata.name}-{reference}"[:_BASE_LENGTH_MAX] + "-"
    metadata.ownerReferences.append(owner_reference(pod))
    metadata.labels.update(template.spec.metadata.labels)
    metadata.annotations.update(template.spec.metadata.annotations)
    metadata.annotations[POD_CLAIM_NAME] = reference
    claim.spec.CopyFrom(template.spec.spec)
    return claim
