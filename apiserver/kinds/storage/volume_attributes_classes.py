"""VolumeAttributesClasses (kube-apiserver 1.36, pkg/apis/storage/validation)."""

from __future__ import annotations

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.storage.class_parameters import parameters, provisioner
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, metadata
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import storage


class VolumeAttributesClassStrategy(Strategy[storage.VolumeAttributesClass]):
    """The main resource."""

    def validate(self, new: storage.VolumeAttributesClass, env: Environment) -> list[Cause]:
        errors = self.validate_metadata(new) + provisioner("driverName", new.driverName)
        errors += parameters(new.parameters)
        if not new.parameters:
            errors.append(field.required("parameters", "must contain at least one key/value pair"))
        return errors

    def validate_update(
        self, new: storage.VolumeAttributesClass, old: storage.VolumeAttributesClass, env: Environment
    ) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata)
        for name in ("driverName", "parameters"):
            if getattr(new, name) != getattr(old, name):
                errors.append(field.forbidden(name, f"updates to {name} are forbidden."))
        return errors + self.validate(new, env)


def _row(obj: storage.VolumeAttributesClass, now: float) -> Cells:
    return [obj.driverName]


RULES = KindRules(
    kind=kinds.VOLUME_ATTRIBUTES_CLASS,
    strategy=VolumeAttributesClassStrategy(kinds.VOLUME_ATTRIBUTES_CLASS),
    columns=Columns(_row, NAME, Column("DriverName", "volumeattributesclass-storage-v1#driverName"), AGE),
    delete_response=DeleteResponse.OBJECT,
)
