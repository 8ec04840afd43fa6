"""ConfigMaps (kube-apiserver 1.36, ValidateConfigMap; registry/core/configmap)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_SIZE_BYTES_MAX = 1024 * 1024


def _validate(obj: core.ConfigMap) -> Iterator[Cause]:
    size = 0
    for key in sorted(obj.data):
        text = obj.data[key]
        yield from field.check(f"data[{key}]", key, names.config_key)
        if key in obj.binaryData:
            yield field.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(text.encode())
    for key in sorted(obj.binaryData):
        value = obj.binaryData[key]
        yield from field.check(f"binaryData[{key}]", key, names.config_key)
        size += len(value)
    if size > _SIZE_BYTES_MAX:
        yield field.too_long("", _SIZE_BYTES_MAX)


def _validate_change(new: core.ConfigMap, old: core.ConfigMap) -> list[Cause]:
    if not (old.HasField("immutable") and old.immutable):
        return []
    changed = [name for name in ("data", "binaryData") if getattr(new, name) != getattr(old, name)]
    if not new.immutable:
        changed.insert(0, "immutable")
    return [field.forbidden(name, "field is immutable when `immutable` is set") for name in changed]


def _row(config: core.ConfigMap, now: float) -> Cells:
    count = len(config.data) + len(config.binaryData)
    return [count]


RULES = KindRules(
    kind=kinds.CONFIG_MAP,
    strategy=SimpleStrategy(kinds.CONFIG_MAP, _validate, _validate_change, updates=UpdateCheck.OBJECT),
    columns=Columns(_row, NAME, Column("Data", "configmap-v1#data"), AGE),
    limits_own_size=True,
)
