"""CSINodes (kube-apiserver 1.36, pkg/apis/storage/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.values import device_names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import storage

_NODE_ID_LENGTH_MAX = 192


def _validate(obj: storage.CSINode) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, driver in enumerate(obj.spec.drivers):
        path = f"spec.drivers[{index}]"
        yield from device_names.driver(f"{path}.name", driver.name)
        if not driver.nodeID:
            yield field.required(f"{path}.nodeID")
        elif len(driver.nodeID.encode()) > _NODE_ID_LENGTH_MAX:
            problem = f"must be {_NODE_ID_LENGTH_MAX} characters or less"
            yield field.invalid(f"{path}.nodeID", driver.nodeID, problem)
        yield from field.non_negative(f"{path}.allocatable.count", driver.allocatable.count)
        yield from field.unique(f"{path}.name", driver.name, seen)
        keys: set[str] = set()
        for number, key in enumerate(driver.topologyKeys):
            at = f"{path}.topologyKeys"
            if not key:
                yield field.required(at, key)
            yield from field.unique(at, key, keys)
            yield from field.check(f"{at}[{number}]", key, names.qualified_name)


def _validate_change(new: storage.CSINode, old: storage.CSINode) -> Iterator[Cause]:
    """Check that the entry of a driver does not change; drivers may be added and removed."""
    before = {driver.name: driver for driver in old.spec.drivers}
    for driver in new.spec.drivers:
        was = before.get(driver.name)
        if was is None:
            continue
        changed = copy_of(driver)
        changed.ClearField("allocatable")
        if was.HasField("allocatable"):
            changed.allocatable.CopyFrom(was.allocatable)
        if changed != was:
            yield field.invalid("CSINodeDriver", dump(driver), field.IMMUTABLE)


def _row(obj: storage.CSINode, now: float) -> Cells:
    return [len(obj.spec.drivers)]


RULES = KindRules(
    kind=kinds.CSI_NODE,
    strategy=SimpleStrategy(kinds.CSI_NODE, _validate, _validate_change),
    columns=Columns(
        _row,
        NAME,
        Column("Drivers", "Drivers indicates the number of CSI drivers registered on the node", "integer"),
        AGE,
    ),
    delete_response=DeleteResponse.OBJECT,
    needs_resource_version=True,
)
