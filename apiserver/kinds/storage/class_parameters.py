"""Terms of StorageClasses and VolumeAttributesClasses: driver names and parameters (1.36)."""

from __future__ import annotations

from collections.abc import Mapping

from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause

_PARAMETERS_MAX = 512
_PARAMETERS_BYTES_MAX = 256 * 1024


def provisioner(path: str, name: str) -> list[Cause]:
    """Check the name of the driver that makes or changes volumes."""
    if not name:
        return [field.required(path)]
    return field.problems(path, name, names.qualified_name(name.lower()))


def parameters(found: Mapping[str, str]) -> list[Cause]:
    """Check the parameters of a StorageClass or a VolumeAttributesClass."""
    if len(found) > _PARAMETERS_MAX:
        return [field.too_long("parameters", _PARAMETERS_MAX)]
    errors = [field.invalid("parameters", "", "field can not be empty.")] if "" in found else []
    if sum(len(key.encode()) + len(found[key].encode()) for key in found) > _PARAMETERS_BYTES_MAX:
        errors.append(field.too_long("parameters", _PARAMETERS_BYTES_MAX))
    return errors
