"""The claims that a pod uses. Pure.

Source: kube-controller-manager 1.36, pkg/controller/volume/pvcprotection.
"""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.machinery.api.volume_claims import claims_of


def waits_with(pod: core.Pod) -> list[str]:
    """Return the claims (ns/name) that wait for a pod's node, [] once it has one."""
    if pod.spec.nodeName:
        return []
    return [f"{pod.metadata.namespace}/{name}" for name in claims_of(pod)]


def uses(pod: core.Pod, claim: core.PersistentVolumeClaim) -> bool:
    """Report whether the pod protects the claim: it is on a node, even if it has ended.

    Source: kube-controller-manager 1.36, pvcprotection, podUsesPVC.
    """
    return (
        pod.metadata.namespace == claim.metadata.namespace
        and bool(pod.spec.nodeName)
        and claim.metadata.name in claims_of(pod)
    )
