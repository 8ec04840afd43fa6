"""What the persistent volume controller does next for a claim or a volume. Pure.

Source: kube-controller-manager 1.36, pkg/controller/volume/persistentvolume (syncClaim, syncVolume), and the
order of its writes as recorded in the timelines: the volume's status, the claim with its bind annotations,
the claim's status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from controllers.volumes import annotations as names
from controllers.volumes.steps import (
    DeleteVolume,
    Step,
    Tell,
    UpdateClaim,
    UpdateClaimStatus,
    UpdateVolume,
    UpdateVolumeStatus,
)
from machinery import quantity
from machinery.node_affinity import NodeSelector
from machinery.pb import core, storage
from machinery.selectors import LabelSelector

RESYNC_SECONDS = 15.0
"""How often an unbound claim is looked at again, upstream's resync period."""


@dataclass(frozen=True, slots=True)
class ClaimView:
    """All that the decision for one claim looks at.

    `volume` is the one that `spec.volumeName` names; `candidates` are all volumes that name this claim, and
    the free ones of its class.
    """

    claim: core.PersistentVolumeClaim
    storage_class: storage.StorageClass | None
    volume: core.PersistentVolume | None
    candidates: Iterable[core.PersistentVolume]
    selected_node: core.Node | None
    waiting_pods: Sequence[str] = ()
    """Names of the pods that use the claim and have no node yet."""


def class_of(claim: core.PersistentVolumeClaim) -> str:
    """The claim's class: the old annotation wins over the field."""
    return claim.metadata.annotations.get(names.CLASS_BETA) or claim.spec.storageClassName


def _copy_claim(claim: core.PersistentVolumeClaim) -> core.PersistentVolumeClaim:
    new = core.PersistentVolumeClaim()
    new.CopyFrom(claim)
    return new


def _copy_volume(volume: core.PersistentVolume) -> core.PersistentVolume:
    new = core.PersistentVolume()
    new.CopyFrom(volume)
    return new


def _claims(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    """Whether the volume is bound, or prebound, to this very claim."""
    if not volume.spec.HasField("claimRef"):
        return False
    reference = volume.spec.claimRef
    if (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def waits_for_consumer(storage_class: storage.StorageClass | None) -> bool:
    return storage_class is not None and storage_class.volumeBindingMode == "WaitForFirstConsumer"


def _capacity(volume: core.PersistentVolume) -> int:
    return quantity.value(volume.spec.capacity["storage"]) if "storage" in volume.spec.capacity else 0


def _requested(claim: core.PersistentVolumeClaim) -> int:
    requests = claim.spec.resources.requests
    return quantity.value(requests["storage"]) if "storage" in requests else 0


def _fits(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    if volume.status.phase != "Available" or volume.metadata.HasField("deletionTimestamp"):
        return False
    if volume.spec.storageClassName != class_of(claim):
        return False
    if (volume.spec.volumeMode or "Filesystem") != (claim.spec.volumeMode or "Filesystem"):
        return False
    if not set(claim.spec.accessModes) <= set(volume.spec.accessModes):
        return False
    if claim.spec.HasField("selector") and not LabelSelector.from_message(claim.spec.selector).matches(
        volume.metadata.labels
    ):
        return False
    return _capacity(volume) >= _requested(claim)


def _reaches(volume: core.PersistentVolume, node: core.Node | None) -> bool:
    if node is None or not volume.spec.nodeAffinity.HasField("required"):
        return True
    required = NodeSelector.read(volume.spec.nodeAffinity.required)
    return required.matches(node.metadata.labels, node.metadata.name)


def best_match(view: ClaimView) -> core.PersistentVolume | None:
    """The volume that a claim without one gets: prebound to it, else the smallest that fits."""
    free: list[core.PersistentVolume] = []
    for volume in view.candidates:
        if _claims(volume, view.claim):
            return volume
        if not volume.spec.HasField("claimRef") and _fits(volume, view.claim):
            free.append(volume)
    if waits_for_consumer(view.storage_class):
        # Free volumes of such a class are the scheduler's to choose: it prebinds them in PreBind.
        return None
    fitting = [volume for volume in free if _reaches(volume, view.selected_node)]
    return min(fitting, key=lambda volume: (_capacity(volume), volume.metadata.name), default=None)


def _bind_volume(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> Step | None:
    """The write that the volume's side of the binding still needs."""
    reference = volume.spec.claimRef
    if not volume.spec.HasField("claimRef") or not reference.uid:
        new = _copy_volume(volume)
        if not volume.spec.HasField("claimRef"):
            new.metadata.annotations[names.BOUND_BY_CONTROLLER] = "yes"
        new.spec.claimRef.CopyFrom(
            core.ObjectReference(
                kind="PersistentVolumeClaim",
                apiVersion="v1",
                namespace=claim.metadata.namespace,
                name=claim.metadata.name,
                uid=claim.metadata.uid,
                resourceVersion=claim.metadata.resourceVersion,
            )
        )
        return UpdateVolume(new)
    if volume.status.phase != "Bound":
        new = _copy_volume(volume)
        new.status.phase = "Bound"
        new.status.ClearField("message")
        new.status.ClearField("reason")
        return UpdateVolumeStatus(new)
    return None


def _bind_claim(claim: core.PersistentVolumeClaim, volume: core.PersistentVolume) -> Step | None:
    """The write that the claim's side of the binding still needs."""
    annotations = claim.metadata.annotations
    if claim.spec.volumeName != volume.metadata.name or names.BIND_COMPLETED not in annotations:
        new = _copy_claim(claim)
        if claim.spec.volumeName != volume.metadata.name:
            new.spec.volumeName = volume.metadata.name
            new.metadata.annotations[names.BOUND_BY_CONTROLLER] = "yes"
        new.metadata.annotations[names.BIND_COMPLETED] = "yes"
        return UpdateClaim(new)
    modes = list(volume.spec.accessModes)
    status = claim.status
    same_capacity = {k: v.string for k, v in status.capacity.items()} == {
        k: v.string for k, v in volume.spec.capacity.items()
    }
    if status.phase != "Bound" or list(status.accessModes) != modes or not same_capacity:
        new = _copy_claim(claim)
        new.status.phase = "Bound"
        del new.status.accessModes[:]
        new.status.accessModes.extend(modes)
        new.status.capacity.clear()
        for resource, amount in volume.spec.capacity.items():
            new.status.capacity[resource].CopyFrom(amount)
        return UpdateClaimStatus(new)
    return None


def _lost(claim: core.PersistentVolumeClaim) -> Step | None:
    if claim.status.phase == "Lost":
        return None
    new = _copy_claim(claim)
    new.status.phase = "Lost"
    return UpdateClaimStatus(new)


def _unbound_claim(view: ClaimView) -> Step | None:
    claim, storage_class = view.claim, view.storage_class
    volume = best_match(view)
    if volume is not None:
        return _bind_volume(volume, claim) or _bind_claim(claim, volume)
    if waits_for_consumer(storage_class) and names.SELECTED_NODE not in claim.metadata.annotations:
        return _wait(claim, view.waiting_pods)
    if not class_of(claim):
        return Tell(
            claim,
            "Normal",
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
            RESYNC_SECONDS,
        )
    if storage_class is None:
        return Tell(
            claim,
            "Warning",
            "ProvisioningFailed",
            f'storageclass.storage.k8s.io "{class_of(claim)}" not found',
            RESYNC_SECONDS,
        )
    return _ask_provisioner(claim, storage_class.provisioner)


def _wait(claim: core.PersistentVolumeClaim, pods: Sequence[str]) -> Step:
    """Nothing can be done for a claim whose pod has no node: say for what it waits."""
    if not pods:
        reason, note = "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
    else:
        reason = "WaitForPodScheduled"
        note = f"waiting for pod{'s' if len(pods) > 1 else ''} {','.join(sorted(pods))} to be scheduled"
    return Tell(claim, "Normal", reason, note, RESYNC_SECONDS)


def _ask_provisioner(claim: core.PersistentVolumeClaim, provisioner: str) -> Step | None:
    """A volume is somebody else's to make: name the provisioner on the claim and say so."""
    if provisioner == names.NO_PROVISIONER:
        return None
    if claim.metadata.annotations.get(names.STORAGE_PROVISIONER) != provisioner:
        new = _copy_claim(claim)
        new.metadata.annotations[names.STORAGE_PROVISIONER] = provisioner
        new.metadata.annotations[names.BETA_STORAGE_PROVISIONER] = provisioner
        return UpdateClaim(new)
    return Tell(
        claim,
        "Normal",
        "ExternalProvisioning",
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually "
        "by the system administrator. If volume creation is delayed, please verify that the provisioner is "
        "running and correctly registered.",
        RESYNC_SECONDS,
    )


def next_claim_step(view: ClaimView) -> Step | None:
    """The next write or event for a claim; None when it is as it should be."""
    claim = view.claim
    if names.BIND_COMPLETED in claim.metadata.annotations:
        if not claim.spec.volumeName or view.volume is None or not _claims(view.volume, claim):
            return _lost(claim)
        return _bind_volume(view.volume, claim) or _bind_claim(claim, view.volume)
    if claim.metadata.HasField("deletionTimestamp"):
        return None
    if not claim.spec.volumeName:
        return _unbound_claim(view)
    if view.volume is None:
        return None  # the user asked for a volume that may still come
    if not view.volume.spec.HasField("claimRef") or _claims(view.volume, claim):
        return _bind_volume(view.volume, claim) or _bind_claim(claim, view.volume)
    return None


def next_volume_step(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim | None) -> Step | None:
    """The next write for a volume by itself: Available, Released, or deleted as its policy says.

    A volume whose claim exists is bound from the claim's side. `claim` is what its reference names now.
    """
    if not volume.spec.HasField("claimRef") or not volume.spec.claimRef.uid:
        return _set_phase(volume, "Available")
    if claim is not None and claim.metadata.uid == volume.spec.claimRef.uid:
        return None
    if volume.status.phase != "Released":
        return _set_phase(volume, "Released")
    if volume.spec.persistentVolumeReclaimPolicy == "Delete" and not volume.metadata.HasField(
        "deletionTimestamp"
    ):
        provisioner = volume.metadata.annotations.get(names.PROVISIONED_BY, "")
        return DeleteVolume(volume) if provisioner == names.DELAYED_PROVISIONER else None
    return None


def _set_phase(volume: core.PersistentVolume, phase: str) -> Step | None:
    if volume.status.phase == phase:
        return None
    new = _copy_volume(volume)
    new.status.phase = phase
    return UpdateVolumeStatus(new)
