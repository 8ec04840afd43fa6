"""Which persistent volume suits a claim. Source: component-helpers' storage package, 1.36."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from machinery import quantity
from machinery.node_affinity import NodeSelector
from machinery.pb import core, storage
from machinery.selectors import LabelSelector, SelectorError

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


def class_of(obj: core.PersistentVolumeClaim | core.PersistentVolume) -> str:
    """The storage class name; an old annotation wins over the field."""
    annotated = obj.metadata.annotations.get(_CLASS_ANNOTATION)
    return obj.spec.storageClassName if annotated is None else annotated


def is_fully_bound(claim: core.PersistentVolumeClaim) -> bool:
    """Bound in both directions, which only the annotation tells."""
    return bool(claim.spec.volumeName) and BIND_COMPLETED in claim.metadata.annotations


def requested_bytes(claim: core.PersistentVolumeClaim) -> int:
    requests = claim.spec.resources.requests
    return quantity.value(requests["storage"]) if "storage" in requests else 0


def _capacity_bytes(volume: core.PersistentVolume) -> int:
    capacity = volume.spec.capacity
    return quantity.value(capacity["storage"]) if "storage" in capacity else 0


def is_bound_to(volume: core.PersistentVolume, claim: core.PersistentVolumeClaim) -> bool:
    """Whether the volume is reserved for the claim; a reference without uid is by name."""
    if not volume.spec.HasField("claimRef"):
        return False
    reference = volume.spec.claimRef
    if (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def node_selector_of(volume: core.PersistentVolume) -> NodeSelector | None:
    """From which nodes the volume can be used; None: from all."""
    spec = volume.spec
    if not spec.HasField("nodeAffinity") or not spec.nodeAffinity.HasField("required"):
        return None
    return NodeSelector.read(spec.nodeAffinity.required)


def reaches(volume: core.PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels can use the volume; only labels count, not the node's name."""
    selector = node_selector_of(volume)
    return selector is None or selector.matches(labels, "")


def could_match(claim: core.PersistentVolumeClaim, volume: core.PersistentVolume) -> bool:
    """Everything but the node: size, mode, state, selector, access modes; or reserved for the claim."""
    spec = volume.spec
    if spec.HasField("claimRef") and not is_bound_to(volume, claim):
        return False
    if _capacity_bytes(volume) < requested_bytes(claim):
        return False
    if (claim.spec.volumeMode or "Filesystem") != (spec.volumeMode or "Filesystem"):
        return False
    if claim.spec.volumeAttributesClassName != spec.volumeAttributesClassName:
        return False
    if volume.metadata.HasField("deletionTimestamp"):
        return False
    if is_bound_to(volume, claim):
        return True
    if volume.status.phase != "Available" or class_of(volume) != class_of(claim):
        return False
    if claim.spec.HasField("selector"):
        try:
            selector = LabelSelector.from_message(claim.spec.selector)
        except SelectorError:
            return False
        if not selector.matches(volume.metadata.labels):
            return False
    return set(claim.spec.accessModes) <= set(spec.accessModes)


def candidates(
    claim: core.PersistentVolumeClaim, volumes: Iterable[core.PersistentVolume]
) -> list[core.PersistentVolume]:
    """Volumes of the claim's class that could match: only the one reserved for it, else smallest first."""
    wanted = class_of(claim)
    found = [v for v in volumes if class_of(v) == wanted and could_match(claim, v)]
    reserved = [v for v in found if is_bound_to(v, claim)]
    if reserved:
        return reserved[:1]
    return sorted(found, key=_capacity_bytes)


def choose(
    possible: Iterable[core.PersistentVolume], labels: Mapping[str, str], taken: Collection[str]
) -> core.PersistentVolume | None:
    """The first of `candidates` that the node can use and that no other claim of the pod takes."""
    for volume in possible:
        if volume.metadata.name not in taken and reaches(volume, labels):
            return volume
    return None


def delays_binding(storage_class: storage.StorageClass | None) -> bool:
    """Whether claims of the class wait for a pod."""
    return storage_class is not None and storage_class.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER


def provisions(storage_class: storage.StorageClass) -> bool:
    """Whether somebody makes volumes of the class."""
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def topology_allows(storage_class: storage.StorageClass, labels: Mapping[str, str]) -> bool:
    """Whether volumes of the class can be made for a node with these labels; terms are ORed."""
    terms = storage_class.allowedTopologies
    if not terms:
        return True
    return any(
        term.matchLabelExpressions
        and all(labels.get(e.key) in list(e.values) for e in term.matchLabelExpressions)
        for term in terms
    )


def with_room(
    capacities: Iterable[storage.CSIStorageCapacity], size_bytes: int
) -> list[storage.CSIStorageCapacity]:
    """The storage (KEP-1472) where a volume of that size can be made."""
    found = []
    for capacity in capacities:
        limit = volume_size_max(capacity)
        if limit is not None and limit >= size_bytes and capacity.HasField("nodeTopology"):
            found.append(capacity)
    return found


def volume_size_max(capacity: storage.CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, bytes; None when it is not told."""
    if capacity.HasField("maximumVolumeSize"):
        return quantity.value(capacity.maximumVolumeSize)
    return quantity.value(capacity.capacity) if capacity.HasField("capacity") else None


def topology_of(capacity: storage.CSIStorageCapacity) -> LabelSelector | None:
    """Which nodes reach the storage; None: none of them, as nobody can read it."""
    try:
        return LabelSelector.from_message(capacity.nodeTopology)
    except SelectorError:
        return None
