"""VolumeAttributesClasses (kube-apiserver 1.36, pkg/apis/storage/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.kinds.storage.class_parameters import parameters, provisioner
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import storage


def _validate(obj: storage.VolumeAttributesClass) -> Iterator[Cause]:
    yield from provisioner("driverName", obj.driverName)
    yield from parameters(obj.parameters)
    if not obj.parameters:
        yield field.required("parameters", "must contain at least one key/value pair")


def _validate_change(
    new: storage.VolumeAttributesClass, old: storage.VolumeAttributesClass
) -> Iterator[Cause]:
    for name in ("driverName", "parameters"):
        if getattr(new, name) != getattr(old, name):
            yield field.forbidden(name, f"updates to {name} are forbidden.")


def _row(obj: storage.VolumeAttributesClass, now: float) -> Cells:
    return [obj.driverName]


RULES = KindRules(
    kind=kinds.VOLUME_ATTRIBUTES_CLASS,
    strategy=SimpleStrategy(
        kinds.VOLUME_ATTRIBUTES_CLASS, _validate, _validate_change, updates=UpdateCheck.OBJECT
    ),
    columns=Columns(_row, NAME, Column("DriverName", "volumeattributesclass-storage-v1#driverName"), AGE),
    delete_response=DeleteResponse.OBJECT,
)
