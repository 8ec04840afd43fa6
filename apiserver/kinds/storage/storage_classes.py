"""StorageClasses (kube-apiserver 1.36, pkg/apis/storage/validation and pkg/registry/storage)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.kinds.storage.class_parameters import parameters, provisioner
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.pods import warnings as pod_warnings
from nominee.machinery.api import kinds
from nominee.machinery.api.default_class import DEFAULT_STORAGE_CLASS, is_default
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core, storage

_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")


def _validate(obj: storage.StorageClass) -> Iterator[Cause]:
    """Beside its metadata."""
    yield from provisioner("provisioner", obj.provisioner)
    yield from parameters(obj.parameters)
    if obj.reclaimPolicy and obj.reclaimPolicy not in ("Delete", "Retain"):
        yield field.not_supported("reclaimPolicy", obj.reclaimPolicy, ("Delete", "Retain"))
    if not obj.HasField("volumeBindingMode"):
        yield field.required("volumeBindingMode")
    elif obj.volumeBindingMode not in _BINDING_MODES:
        yield field.not_supported("volumeBindingMode", obj.volumeBindingMode, _BINDING_MODES)
    yield from _topologies(obj)


def _topologies(obj: storage.StorageClass) -> Iterator[Cause]:
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(obj.allowedTopologies):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        found: dict[str, set[str]] = {}
        for number, expression in enumerate(term.matchLabelExpressions):
            at = f"{path}[{number}]"
            yield from _topology(at, expression)
            if expression.key in found:
                yield field.duplicate(f"{at}.key", expression.key)
            found[expression.key] = set(expression.values)
        if found in seen:
            yield field.duplicate(path, "")
        seen.append(found)


def _topology(path: str, expression: core.TopologySelectorLabelRequirement) -> list[Cause]:
    errors = [] if expression.values else [field.required(f"{path}.values")]
    seen: set[str] = set()
    for place, value in enumerate(expression.values):
        errors += field.unique(f"{path}.values[{place}]", value, seen)
    return errors + field.check(f"{path}.key", expression.key, names.qualified_name)


def _validate_change(new: storage.StorageClass, old: storage.StorageClass) -> Iterator[Cause]:
    if new.parameters != old.parameters:
        shown = dict(sorted(new.parameters.items())) or None
        yield field.invalid("parameters", shown, field.IMMUTABLE)
    yield from field.immutable("provisioner", new.provisioner, old.provisioner)
    yield from field.immutable("reclaimPolicy", new.reclaimPolicy, old.reclaimPolicy)
    yield from field.immutable("volumeBindingMode", new.volumeBindingMode, old.volumeBindingMode)


def _warnings(obj: storage.StorageClass, _old: storage.StorageClass | None) -> Iterator[str]:
    for index, term in enumerate(obj.allowedTopologies):
        for number, expression in enumerate(term.matchLabelExpressions):
            problem = pod_warnings.deprecated_label(expression.key)
            if problem:
                at = f"allowedTopologies[{index}].matchLabelExpressions[{number}].key"
                yield f"{at}: {problem}"


def _row(storage_class: storage.StorageClass, now: float) -> Cells:
    default = is_default(storage_class, DEFAULT_STORAGE_CLASS)
    name = storage_class.metadata.name
    return [
        f"{name} (default)" if default else name,
        storage_class.provisioner,
        storage_class.reclaimPolicy or "Delete",
        storage_class.volumeBindingMode or "Immediate",
        storage_class.allowVolumeExpansion,
    ]


RULES = KindRules(
    kind=kinds.STORAGE_CLASS,
    strategy=SimpleStrategy(
        kinds.STORAGE_CLASS,
        _validate,
        _validate_change,
        updates=UpdateCheck.OBJECT_FIRST,
        warnings=_warnings,
    ),
    columns=Columns(
        _row,
        Column("Name", NAME.described, format="name"),
        Column("Provisioner", "storageclass-storage-v1#provisioner"),
        Column("ReclaimPolicy", "storageclass-storage-v1#reclaimPolicy"),
        Column("VolumeBindingMode", "storageclass-storage-v1#volumeBindingMode"),
        Column("AllowVolumeExpansion", "storageclass-storage-v1#allowVolumeExpansion"),
        AGE,
    ),
    delete_response=DeleteResponse.OBJECT,
    read_your_write=True,
)
