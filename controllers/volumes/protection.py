"""Which claims and volumes are in use, and so keep their protection finalizer while they are deleted. Pure.

Source: kube-controller-manager 1.36, pkg/controller/volume/pvcprotection and pvprotection.
"""

from __future__ import annotations

from nominee.controllers.volumes.pod_claims import claims_of
from nominee.machinery.api.pb import core


def uses(pod: core.Pod, claim: core.PersistentVolumeClaim) -> bool:
    """Report whether the pod protects the claim: it is on a node and has not ended."""
    return (
        pod.metadata.namespace == claim.metadata.namespace
        and bool(pod.spec.nodeName)
        and pod.status.phase not in ("Succeeded", "Failed")
        and claim.metadata.name in claims_of(pod)
    )
