"""The next step of the persistent volume controller for a claim or a volume. Pure.

Source: kube-controller-manager 1.36, pkg/controller/volume/persistentvolume (syncClaim, syncVolume), and the
order of its writes as recorded in the timelines: the volume's status, the claim with its bind annotations,
the claim's status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nominee.controllers.volumes import annotations as names
from nominee.controllers.volumes.reclaiming import reclaim
from nominee.controllers.volumes.steps import RecordEvent, Step, Update
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, storage
from nominee.machinery.scheduling.volume_matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    available_volumes,
    bound_copy,
    capacity_bytes,
    class_of,
    delays_binding,
    has_access_modes,
    has_class,
    is_bound_to,
    prebound_volume,
    requested_bytes,
)

RESYNC_SECONDS = 15.0
"""After which an unbound claim is reconciled again, upstream's resync period."""

_IN_TREE = "kubernetes.io/"
_MIGRATED = (
    "aws-ebs",
    "azure-disk",
    "azure-file",
    "cinder",
    "gce-pd",
    "portworx-volume",
    "vsphere-volume",
)
"""In-tree provisioners that CSI drivers have replaced; any other one, as no-provisioner, is unknown."""


@dataclass(frozen=True, slots=True)
class ClaimView:
    """The objects that the decision for one claim depends on.

    `volume` is the one that `spec.volumeName` names; `candidates` are all volumes that refer to this claim,
    and the unreserved ones of its class.
    """

    claim: core.PersistentVolumeClaim
    storage_class: storage.StorageClass | None
    volume: core.PersistentVolume | None
    candidates: Iterable[core.PersistentVolume]
    waiting_pods: Sequence[str] = ()
    """Names of the pods that use the claim and have no node yet."""
    default_class: str = ""
    """The name of the cluster's default class, "" if it has no such class."""


def best_match(view: ClaimView) -> core.PersistentVolume | None:
    """Return the volume that a claim without one gets: a prebound one, else the best that is available.

    Volumes with the fewest access modes come first, then the smallest, then by name. Nodes do not count: the
    scheduler chooses the volumes of a class that waits for a consumer, and prebinds them in PreBind.

    Raises:
        SelectorError: the claim's selector is invalid.
    Source: kube-controller-manager 1.36, persistentvolume, findByClaim.
    """
    claim = view.claim
    volumes = [volume for volume in view.candidates if has_access_modes(volume, claim)]
    available = available_volumes(claim, volumes)
    prebound = prebound_volume(claim, volumes)
    if prebound is not None or delays_binding(view.storage_class):
        return prebound
    return min(
        available,
        key=lambda v: (len(set(v.spec.accessModes)), capacity_bytes(v), v.metadata.name),
        default=None,
    )


def _bind_volume(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> Step | None:
    """Return the write that the volume still needs for the binding."""
    bound = bound_copy(volume, claim)
    if bound is not volume:
        return Update(bound)
    if volume.status.phase != "Bound":
        new = copy_of(volume)
        new.status.phase = "Bound"
        new.status.ClearField("message")
        new.status.ClearField("reason")
        return Update(new, "status")
    return None


def _bind_claim(claim: core.PersistentVolumeClaim, volume: core.PersistentVolume) -> Step | None:
    """Return the write that the claim still needs for the binding."""
    annotations = claim.metadata.annotations
    if claim.spec.volumeName != volume.metadata.name or BIND_COMPLETED not in annotations:
        new = copy_of(claim)
        if claim.spec.volumeName != volume.metadata.name:
            new.spec.volumeName = volume.metadata.name
            new.metadata.annotations[BOUND_BY_CONTROLLER] = "yes"
        new.metadata.annotations[BIND_COMPLETED] = "yes"
        return Update(new)
    new = copy_of(claim)
    _set_bound_status(new.status, volume)
    return Update(new, "status") if new.status != claim.status else None


def _set_bound_status(status: core.PersistentVolumeClaimStatus, volume: core.PersistentVolume) -> None:
    """Copy the volume's values into a claim's status.

    The capacity and the VolumeAttributesClass are set when the claim becomes bound; later they belong to
    who resizes or modifies the volume.

    Source: kube-controller-manager 1.36, persistentvolume-binder-controller, updateClaimStatus.
    """
    if status.phase != "Bound":
        status.capacity.clear()
        for resource, amount in volume.spec.capacity.items():
            status.capacity[resource].CopyFrom(amount)
        if status.phase != "Lost":
            status.ClearField("currentVolumeAttributesClassName")
            if volume.spec.HasField("volumeAttributesClassName"):
                status.currentVolumeAttributesClassName = volume.spec.volumeAttributesClassName
        status.phase = "Bound"
    del status.accessModes[:]
    status.accessModes.extend(volume.spec.accessModes)


def _lost(claim: core.PersistentVolumeClaim, reason: str, note: str) -> Step | None:
    """Return the write that reports a bound claim as lost, with its event."""
    if claim.status.phase == "Lost":
        return None
    new = copy_of(claim)
    new.status.phase = "Lost"
    for name in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
        new.status.ClearField(name)
    return Update(new, "status", RecordEvent(new, "Warning", reason, note))


def _bound_claim(view: ClaimView) -> Step | None:
    """Return the next step for a claim whose binding was completed once."""
    claim, volume = view.claim, view.volume
    if not claim.spec.volumeName:
        note = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        return _lost(claim, "ClaimLost", note)
    if volume is None:
        note = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        return _lost(claim, "ClaimLost", note)
    if volume.spec.HasField("claimRef") and volume.spec.claimRef.uid != claim.metadata.uid:
        note = "Two claims are bound to the same volume, this one is bound incorrectly"
        return _lost(claim, "ClaimMisbound", note)
    return _bind_volume(volume, claim) or _bind_claim(claim, volume)


def _unbound_claim(view: ClaimView) -> Step | None:
    claim, storage_class = view.claim, view.storage_class
    volume = best_match(view)
    if volume is not None:
        return _bind_volume(volume, claim) or _bind_claim(claim, volume)
    if view.default_class and not has_class(claim):
        new = copy_of(claim)
        new.spec.storageClassName = view.default_class
        return Update(new)  # KEP-3333
    if delays_binding(storage_class) and SELECTED_NODE not in claim.metadata.annotations:
        return _wait(claim, view.waiting_pods)
    if not class_of(claim):
        return RecordEvent(
            claim,
            "Normal",
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
            RESYNC_SECONDS,
        )
    if storage_class is None:
        return RecordEvent(
            claim,
            "Warning",
            "ProvisioningFailed",
            f'storageclass.storage.k8s.io "{class_of(claim)}" not found',
            RESYNC_SECONDS,
        )
    return _ask_provisioner(claim, storage_class.provisioner)


def _wait(claim: core.PersistentVolumeClaim, pods: Sequence[str]) -> Step:
    """Return the event with the reason why a claim whose pod has no node waits."""
    if not pods:
        reason, note = "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
    else:
        reason = "WaitForPodScheduled"
        note = f"waiting for pod{'s' if len(pods) > 1 else ''} {','.join(sorted(pods))} to be scheduled"
    return RecordEvent(claim, "Normal", reason, note, RESYNC_SECONDS)


def _ask_provisioner(claim: core.PersistentVolumeClaim, provisioner: str) -> Step:
    """Name the provisioner, which makes the volume, on the claim, and record that.

    Source: kube-controller-manager 1.36, persistentvolume, findProvisionablePlugin.
    """
    if provisioner.startswith(_IN_TREE) and provisioner.removeprefix(_IN_TREE) not in _MIGRATED:
        note = f"no volume plugin matched name: {provisioner}"
        return RecordEvent(claim, "Warning", "ProvisioningFailed", note, RESYNC_SECONDS)
    if claim.metadata.annotations.get(names.STORAGE_PROVISIONER) != provisioner:
        new = copy_of(claim)
        new.metadata.annotations[names.STORAGE_PROVISIONER] = provisioner
        new.metadata.annotations[names.BETA_STORAGE_PROVISIONER] = provisioner
        return Update(new)
    return RecordEvent(
        claim,
        "Normal",
        "ExternalProvisioning",
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually "
        "by the system administrator. If volume creation is delayed, please verify that the provisioner is "
        "running and correctly registered.",
        RESYNC_SECONDS,
    )


def next_claim_step(view: ClaimView) -> Step | None:
    """Return the next write or event for a claim, None when it needs no change."""
    claim = view.claim
    if BIND_COMPLETED in claim.metadata.annotations:
        return _bound_claim(view)
    if not claim.spec.volumeName:
        return _unbound_claim(view)
    if view.volume is None:
        return None  # the named volume may be created later
    return _asked_volume(claim, view.volume)


def _asked_volume(claim: core.PersistentVolumeClaim, volume: core.PersistentVolume) -> Step | None:
    """Return the next step for a claim that asks for a volume by its name."""
    name = volume.metadata.name
    if is_bound_to(volume, claim):
        return _bind_volume(volume, claim) or _bind_claim(claim, volume)
    if volume.spec.HasField("claimRef"):
        note = f'volume "{name}" already bound to a different claim.'
        return RecordEvent(claim, "Warning", "FailedBinding", note, RESYNC_SECONDS)
    problem = _mismatch(volume, claim)
    if problem:
        note = f'Cannot bind to requested volume "{name}": {problem}'
        return RecordEvent(claim, "Warning", "VolumeMismatch", note, RESYNC_SECONDS)
    return _bind_volume(volume, claim) or _bind_claim(claim, volume)


def _mismatch(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> str:
    """Return why a volume does not satisfy the claim that asks for it, "" where it does.

    Source: kube-controller-manager 1.36, persistentvolume, checkVolumeSatisfyClaim.
    """
    if volume.metadata.HasField("deletionTimestamp"):
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if capacity_bytes(volume) < requested_bytes(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if volume.spec.volumeAttributesClassName != claim.spec.volumeAttributesClassName:
        return "volumeAttributesClassName does not match"
    if (volume.spec.volumeMode or "Filesystem") != (claim.spec.volumeMode or "Filesystem"):
        return "incompatible volumeMode"
    return "" if has_access_modes(volume, claim) else "incompatible accessMode"


def next_volume_step(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim | None) -> Step | None:
    """Return the next write for a volume by itself: Available, Released, or reclaimed by its policy.

    A volume whose claim exists is bound with the claim; it is free again if the claim has got another volume:
    two writers have chosen one for it. `claim` has the name in the volume's reference now.
    Source: kube-controller-manager 1.36, persistentvolume, syncVolume and unbindVolume.
    """
    if not volume.spec.HasField("claimRef") or not volume.spec.claimRef.uid:
        return _set_phase(volume, "Available")
    if claim is not None and claim.metadata.uid == volume.spec.claimRef.uid:
        is_elsewhere = claim.spec.volumeName not in ("", volume.metadata.name)
        if not is_elsewhere:
            return None
        if not _is_made_to_be_deleted(volume):
            return Update(_unbound_copy(volume))
    if volume.status.phase not in ("Released", "Failed"):
        return _set_phase(volume, "Released")
    return reclaim(volume)


def _is_made_to_be_deleted(volume: core.PersistentVolume) -> bool:
    """Report whether a volume was provisioned for its claim alone."""
    is_provisioned = names.PROVISIONED_BY in volume.metadata.annotations
    return is_provisioned and volume.spec.persistentVolumeReclaimPolicy == "Delete"


def _unbound_copy(volume: core.PersistentVolume) -> core.PersistentVolume:
    """Return the volume without its binding; a user's reservation for the claim's name stays."""
    new = copy_of(volume)
    if BOUND_BY_CONTROLLER in new.metadata.annotations:
        del new.metadata.annotations[BOUND_BY_CONTROLLER]
        new.spec.ClearField("claimRef")
    else:
        new.spec.claimRef.ClearField("uid")
    return new


def _set_phase(volume: core.PersistentVolume, phase: str) -> Step | None:
    if volume.status.phase == phase:
        return None
    new = copy_of(volume)
    new.status.phase = phase
    new.status.ClearField("message")
    return Update(new, "status")
