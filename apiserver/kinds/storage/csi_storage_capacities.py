"""CSIStorageCapacities (kube-apiserver 1.36, pkg/apis/storage/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.cells import UNSET
from nominee.apiserver.printing.columns import NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import storage
from nominee.machinery.resources.quantity import Quantity


def _validate(obj: storage.CSIStorageCapacity) -> list[Cause]:
    errors = label_selector("nodeTopology", obj.nodeTopology) if obj.HasField("nodeTopology") else []
    errors += field.check("storageClassName", obj.storageClassName, names.dns_subdomain)
    for name in ("capacity", "maximumVolumeSize"):
        if obj.HasField(name):
            text = getattr(obj, name).string
            if Quantity.parse(text or "0").sign < 0:
                problem = "must be greater than or equal to 0"
                errors.append(field.invalid(name, text, problem))
    return errors


def _validate_change(new: storage.CSIStorageCapacity, old: storage.CSIStorageCapacity) -> Iterator[Cause]:
    if new.nodeTopology != old.nodeTopology:
        yield field.invalid("nodeTopology", dump(new.nodeTopology), field.IMMUTABLE)
    yield from field.immutable("storageClassName", new.storageClassName, old.storageClassName)


def _row(obj: storage.CSIStorageCapacity, now: float) -> Cells:
    capacity = obj.capacity.string if obj.HasField("capacity") else UNSET
    return [obj.storageClassName, capacity]


RULES = KindRules(
    kind=kinds.CSI_STORAGE_CAPACITY,
    strategy=SimpleStrategy(kinds.CSI_STORAGE_CAPACITY, _validate, _validate_change),
    columns=Columns(
        _row,
        NAME,
        Column("StorageClassName", "csistoragecapacity-storage-v1#storageClassName"),
        Column("Capacity", "csistoragecapacity-storage-v1#capacity"),
    ),
    needs_resource_version=True,
)
