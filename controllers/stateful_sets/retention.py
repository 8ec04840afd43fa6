"""The owners of a stateful set's claims, by its persistentVolumeClaimRetentionPolicy. Pure.

A claim that is to go with its set is owned by the set; one that is to go with its pod, since the set was
scaled down, by the pod. The garbage collector deletes it.
Source: kube-controller-manager 1.36, pkg/controller/statefulset (isClaimOwnerUpToDate,
updateClaimOwnerRefForSetAndPod).
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.controllers.stateful_sets.identity import ordinal_of, ordinals
from nominee.machinery.api.objects import copy_of, owner_reference
from nominee.machinery.api.pb import apps, core, meta


def _names(reference: meta.OwnerReference, owner: apps.StatefulSet | core.Pod) -> bool:
    """Report whether a reference has the owner's kind and name; the uid may be another's."""
    one = owner_reference(owner)
    return (reference.apiVersion, reference.kind, reference.name) == (one.apiVersion, one.kind, one.name)


def _is_stale(claim: core.PersistentVolumeClaim, owner: apps.StatefulSet | core.Pod) -> bool:
    """Report whether an earlier object of the owner's name owns the claim."""
    references = claim.metadata.ownerReferences
    named = next((each for each in references if _names(each, owner)), None)
    return named is not None and named.uid != owner.metadata.uid


def blocks_creation(of: apps.StatefulSet, pod: core.Pod, claim: core.PersistentVolumeClaim) -> bool:
    """Report whether a claim is about to go with an earlier pod of this name."""
    return of.spec.persistentVolumeClaimRetentionPolicy.whenScaled == "Delete" and _is_stale(claim, pod)


def has_other_controller(of: apps.StatefulSet, pod: core.Pod, claim: core.PersistentVolumeClaim) -> bool:
    """Report whether an object that is neither the set nor the pod controls a claim that is to be deleted."""
    policy = of.spec.persistentVolumeClaimRetentionPolicy
    if "Delete" not in (policy.whenScaled, policy.whenDeleted):
        return False
    return any(
        each.controller and not _names(each, of) and not _names(each, pod)
        for each in claim.metadata.ownerReferences
    )


def _owners(of: apps.StatefulSet, pod: core.Pod) -> list[apps.StatefulSet | core.Pod]:
    """Return the owners that the policy wants a claim of the pod to have."""
    policy = of.spec.persistentVolumeClaimRetentionPolicy
    if policy.whenScaled == "Delete" and ordinal_of(pod) not in ordinals(of):
        return [pod]
    return [of] if policy.whenDeleted == "Delete" else []


def changed_claim(
    of: apps.StatefulSet, pod: core.Pod, claim: core.PersistentVolumeClaim
) -> core.PersistentVolumeClaim | None:
    """Return the claim with the owners that the policy wants, or None if they need no change.

    A claim of an earlier set or pod of the same name is left alone.
    """
    if _is_stale(claim, of) or _is_stale(claim, pod):
        return None
    references = claim.metadata.ownerReferences
    own = [each for each in references if _names(each, of) or _names(each, pod)]
    owners: Sequence[apps.StatefulSet | core.Pod] = _owners(of, pod)
    if has_other_controller(of, pod, claim):
        owners = ()
    wanted = {owner.metadata.uid for owner in owners}
    if {each.uid for each in own} == wanted and all(each.controller for each in own):
        return None
    new = copy_of(claim)
    del new.metadata.ownerReferences[:]
    new.metadata.ownerReferences.extend(each for each in references if each not in own)
    new.metadata.ownerReferences.extend(owner_reference(owner) for owner in owners)
    return new
