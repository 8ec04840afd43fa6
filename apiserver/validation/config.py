"""ConfigMaps and Leases (kube-apiserver 1.36)."""

from __future__ import annotations

from apiserver.validation import field, names
from machinery.api.errors import Cause
from machinery.api.pb import coordination, core

SIZE_BYTES_MAX = 1024 * 1024
_NOT_POSITIVE = "must be greater than 0"


def config_map(obj: core.ConfigMap) -> list[Cause]:
    errors: list[Cause] = []
    size = 0
    for key in sorted(obj.data):
        text = obj.data[key]
        errors += [field.invalid(f"data[{key}]", key, problem) for problem in names.config_key(key)]
        if key in obj.binaryData:
            errors.append(field.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(text.encode())
    for key in sorted(obj.binaryData):
        value = obj.binaryData[key]
        errors += [field.invalid(f"binaryData[{key}]", key, problem) for problem in names.config_key(key)]
        size += len(value)
    if size > SIZE_BYTES_MAX:
        errors.append(field.too_long("", SIZE_BYTES_MAX))
    return errors


def config_map_update(new: core.ConfigMap, old: core.ConfigMap) -> list[Cause]:
    if not (old.HasField("immutable") and old.immutable):
        return []
    changed = [name for name in ("data", "binaryData") if getattr(new, name) != getattr(old, name)]
    if not new.immutable:
        changed.insert(0, "immutable")
    return [field.forbidden(name, "field is immutable when `immutable` is set") for name in changed]


def lease(obj: coordination.Lease) -> list[Cause]:
    errors: list[Cause] = []
    spec = obj.spec
    if spec.HasField("leaseDurationSeconds") and spec.leaseDurationSeconds <= 0:
        errors.append(field.invalid("spec.leaseDurationSeconds", spec.leaseDurationSeconds, _NOT_POSITIVE))
    if spec.HasField("leaseTransitions") and spec.leaseTransitions < 0:
        problem = "must be greater than or equal to 0"
        errors.append(field.invalid("spec.leaseTransitions", spec.leaseTransitions, problem))
    return errors
