"""VolumeAttributesClasses (kube-apiserver 1.36, pkg/apis/storage/validation)."""

from __future__ import annotations

from typing import Any

from apiserver.registry.strategy import Environment, Strategy
from apiserver.validation import field, metadata, storage
from machinery.api import kinds
from machinery.api.errors import Cause


class VolumeAttributesClassStrategy(Strategy):
    def validate(self, new: Any, env: Environment) -> list[Cause]:
        errors = self.validate_metadata(new) + storage.provisioner("driverName", new.driverName)
        errors += storage.parameters(new.parameters)
        if not new.parameters:
            errors.append(field.required("parameters", "must contain at least one key/value pair"))
        return errors

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata)
        for name in ("driverName", "parameters"):
            if getattr(new, name) != getattr(old, name):
                errors.append(field.forbidden(name, f"updates to {name} are forbidden."))
        return errors + self.validate(new, env)


STRATEGY = VolumeAttributesClassStrategy(kinds.VOLUME_ATTRIBUTES_CLASS)
