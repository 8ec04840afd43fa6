"""Match claims with persistent volumes, for the scheduler and the volume controllers.

Source: component-helpers 1.36, storage/volume (FindMatchingVolume, GetBindVolumeToClaim).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, storage
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.resources import quantity
from nominee.machinery.scheduling.node_affinity import NodeSelector

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

Claim = core.PersistentVolumeClaim
Volume = core.PersistentVolume


def class_of(obj: Claim | Volume) -> str:
    """Return the storage class name; the beta annotation, also an empty one, wins over the field."""
    annotated = obj.metadata.annotations.get(BETA_STORAGE_CLASS)
    return obj.spec.storageClassName if annotated is None else annotated


def has_class(claim: Claim) -> bool:
    """Return whether the claim names a storage class, be it the empty one."""
    return claim.spec.HasField("storageClassName") or BETA_STORAGE_CLASS in claim.metadata.annotations


def delays_binding(storage_class: storage.StorageClass | None) -> bool:
    """Return whether claims of the class wait for a pod."""
    return storage_class is not None and storage_class.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER


def is_fully_bound(claim: Claim) -> bool:
    """Return whether claim and volume are bound to each other, which only the annotation shows."""
    return bool(claim.spec.volumeName) and BIND_COMPLETED in claim.metadata.annotations


def requested_bytes(claim: Claim) -> int:
    """Return the storage that the claim requests, 0 if it requests none."""
    requests = claim.spec.resources.requests
    return quantity.value(requests["storage"]) if "storage" in requests else 0


def capacity_bytes(volume: Volume) -> int:
    """Return the storage that the volume has, 0 if it has none."""
    capacity = volume.spec.capacity
    return quantity.value(capacity["storage"]) if "storage" in capacity else 0


def is_bound_to(volume: Volume, claim: Claim) -> bool:
    """Return whether the volume is bound or prebound to the claim; a reference without a uid is by name."""
    if not volume.spec.HasField("claimRef"):
        return False
    reference = volume.spec.claimRef
    if (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def node_selector_of(volume: Volume) -> NodeSelector | None:
    """Return the selector of the nodes that can use the volume; None: all nodes."""
    spec = volume.spec
    if not spec.HasField("nodeAffinity") or not spec.nodeAffinity.HasField("required"):
        return None
    return NodeSelector.read(spec.nodeAffinity.required)


def reaches(volume: Volume, labels: Mapping[str, str]) -> bool:
    """Return whether a node with these labels can use the volume; the node's name does not count."""
    selector = node_selector_of(volume)
    return selector is None or selector.matches(labels, "")


def has_access_modes(volume: Volume, claim: Claim) -> bool:
    """Return whether the volume has every access mode that the claim asks for."""
    return set(claim.spec.accessModes) <= set(volume.spec.accessModes)


def prebound_volume(claim: Claim, volumes: Iterable[Volume]) -> Volume | None:
    """Return the first volume that is reserved for the claim and large enough, or None.

    Its storage class, phase and labels do not count.
    """
    return next((v for v in volumes if is_bound_to(v, claim) and _suits(claim, v)), None)


def available_volumes(claim: Claim, volumes: Iterable[Volume]) -> list[Volume]:
    """Return the unreserved volumes that suit the claim, apart from access modes and nodes, in their order.

    Raises:
        SelectorError: the claim's selector is invalid; the caller must not bind anything then.
    """
    selector = LabelSelector.from_message(claim.spec.selector) if claim.spec.HasField("selector") else None
    wanted_class = class_of(claim)
    return [
        volume
        for volume in volumes
        if not volume.spec.HasField("claimRef")
        and _suits(claim, volume)
        and volume.status.phase == "Available"
        and (selector is None or selector.matches(volume.metadata.labels))
        and class_of(volume) == wanted_class
    ]


def _suits(claim: Claim, volume: Volume) -> bool:
    """Return whether a volume that is not being deleted has the size, mode and attributes class asked for."""
    spec = volume.spec
    return (
        capacity_bytes(volume) >= requested_bytes(claim)
        and (claim.spec.volumeMode or "Filesystem") == (spec.volumeMode or "Filesystem")
        and claim.spec.volumeAttributesClassName == spec.volumeAttributesClassName
        and not volume.metadata.HasField("deletionTimestamp")
    )


def bound_copy(volume: Volume, claim: Claim) -> Volume:
    """Return a copy of the volume that refers to the claim, or the volume itself if it already does."""
    prebound = is_bound_to(volume, claim)
    if prebound and volume.spec.claimRef.uid:
        return volume
    bound = copy_of(volume)
    if not prebound:
        bound.metadata.annotations[BOUND_BY_CONTROLLER] = "yes"
    bound.spec.claimRef.CopyFrom(claim_reference(claim))
    return bound


def claim_reference(claim: Claim) -> core.ObjectReference:
    """Return the reference to the claim that a bound volume carries."""
    return core.ObjectReference(
        kind="PersistentVolumeClaim",
        apiVersion="v1",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        resourceVersion=claim.metadata.resourceVersion,
    )
