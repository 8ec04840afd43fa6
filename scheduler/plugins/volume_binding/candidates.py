"""Choose volumes and storage for claims that wait for their pod's node.

Source: kube-scheduler 1.36, volume binder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from nominee.machinery.api.pb import core, storage
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.resources import quantity
from nominee.machinery.scheduling.volume_matching import (
    NO_PROVISIONER,
    available_volumes,
    capacity_bytes,
    class_of,
    has_access_modes,
    prebound_volume,
    reaches,
)


def candidates(
    claim: core.PersistentVolumeClaim, volumes: Iterable[core.PersistentVolume]
) -> list[core.PersistentVolume]:
    """Return the volumes that suit the claim on some node: only a prebound one, else the smallest first.

    Raises:
        SelectorError: the claim's selector is invalid.
    """
    wanted = class_of(claim)
    of_class = [volume for volume in volumes if class_of(volume) == wanted]
    available = available_volumes(claim, of_class)
    prebound = prebound_volume(claim, of_class)
    if prebound is not None:
        return [prebound]
    return sorted((v for v in available if has_access_modes(v, claim)), key=capacity_bytes)


def choose(
    possible: Iterable[core.PersistentVolume], labels: Mapping[str, str], taken: Collection[str]
) -> core.PersistentVolume | None:
    """Return the first of `candidates` that the node can use and that no other claim of the pod takes."""
    for volume in possible:
        if volume.metadata.name not in taken and reaches(volume, labels):
            return volume
    return None


def provisions(storage_class: storage.StorageClass) -> bool:
    """Return whether a provisioner makes volumes of the class."""
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def topology_allows(storage_class: storage.StorageClass, labels: Mapping[str, str]) -> bool:
    """Return whether volumes of the class can be made for a node with these labels; terms are ORed."""
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
    """Return the storage (KEP-1472) where a volume of that size can be made."""
    found = []
    for capacity in capacities:
        limit = volume_size_max(capacity)
        if limit is not None and limit >= size_bytes and capacity.HasField("nodeTopology"):
            found.append(capacity)
    return found


def volume_size_max(capacity: storage.CSIStorageCapacity) -> int | None:
    """Return the largest volume that can be made, bytes; None when the driver does not report it."""
    if capacity.HasField("maximumVolumeSize"):
        return quantity.value(capacity.maximumVolumeSize)
    return quantity.value(capacity.capacity) if capacity.HasField("capacity") else None


def topology_of(capacity: storage.CSIStorageCapacity) -> LabelSelector | None:
    """Return the selector of the nodes that reach the storage; None, hence no node, if it is invalid."""
    try:
        return LabelSelector.from_message(capacity.nodeTopology)
    except SelectorError:
        return None
