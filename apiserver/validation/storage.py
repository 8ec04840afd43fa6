"""Volumes and storage classes (kube-apiserver 1.36)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from apiserver.validation import field, metadata, names, quantities
from apiserver.validation.claims import VOLUME_MODES, access_modes, class_name
from apiserver.validation.equality import same
from apiserver.validation.go_dump import dump
from apiserver.validation.persistent_sources import persistent_source
from apiserver.validation.scheduling_terms import node_selector
from machinery.api.errors import Cause
from machinery.api.pb import core, storage
from machinery.resources.quantity import Quantity

_RECLAIM = ("Delete", "Recycle", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_PARAMETERS_MAX = 512
_PARAMETERS_BYTES_MAX = 256 * 1024
_GA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def volume(obj: core.PersistentVolume) -> list[Cause]:
    """The spec."""
    spec = obj.spec
    errors = access_modes("spec.accessModes", spec.accessModes, "")
    errors += _capacity(spec.capacity)
    policy = spec.persistentVolumeReclaimPolicy
    if policy and policy not in _RECLAIM:
        errors.append(field.not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM))
    if spec.HasField("nodeAffinity"):
        at = "spec.nodeAffinity.required"
        if spec.nodeAffinity.HasField("required"):
            errors += node_selector(at, spec.nodeAffinity.required)
        else:
            errors.append(field.required(at, "must specify required node constraints"))
    errors += persistent_source(spec, obj.metadata.name)
    path = spec.persistentVolumeSource.hostPath.path
    if path and posixpath.normpath(path) in ("/", "//") and policy == "Recycle":
        problem = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(field.forbidden("spec.persistentVolumeReclaimPolicy", problem))
    errors += class_name("spec.storageClassName", spec.storageClassName)
    if spec.HasField("volumeMode") and spec.volumeMode not in VOLUME_MODES:
        errors.append(field.not_supported("spec.volumeMode", spec.volumeMode, VOLUME_MODES))
    return errors + _attributes_class(spec)


def _capacity(amounts: quantities.ResourceList) -> list[Cause]:
    errors: list[Cause] = []
    if not amounts:
        errors.append(field.required("spec.capacity"))
    if "storage" not in amounts or len(amounts) > 1:
        value = {name: amounts[name].string for name in sorted(amounts)} or None
        errors.append(field.not_supported("spec.capacity", value, ("storage",)))
    for name in sorted(amounts):
        at, text = f"spec.capacity[{name}]", amounts[name].string
        errors += quantities.basic(at, amounts[name])
        if Quantity.parse(text).sign <= 0:
            errors.append(field.invalid(at, text, "must be greater than zero"))
    return errors


def _attributes_class(spec: core.PersistentVolumeSpec) -> list[Cause]:
    if not spec.HasField("volumeAttributesClassName"):
        return []
    at, name = "spec.volumeAttributesClassName", spec.volumeAttributesClassName
    errors = class_name(at, name) if name else [field.required(at, "an empty string is disallowed")]
    if not spec.persistentVolumeSource.HasField("csi"):
        problem = "has to be specified when using volumeAttributesClassName"
        errors.append(field.required("spec.csi", problem))
    return errors


def volume_change(new: core.PersistentVolume, old: core.PersistentVolume) -> list[Cause]:
    errors: list[Cause] = []
    source = core.PersistentVolumeSource()
    source.CopyFrom(new.spec.persistentVolumeSource)
    before = old.spec.persistentVolumeSource
    if before.HasField("csi") and not before.csi.HasField("controllerExpandSecretRef"):
        # It may be given later.
        source.csi.ClearField("controllerExpandSecretRef")
    if source != before:
        problem = "spec.persistentvolumesource is immutable after creation"
        errors.append(field.forbidden("spec.persistentvolumesource", problem))
    errors += field.immutable("volumeMode", _mode(new.spec), _mode(old.spec))
    if old.spec.HasField("nodeAffinity"):
        errors += _affinity_change(new.spec, old.spec)
    if old.spec.HasField("volumeAttributesClassName") and not new.spec.HasField("volumeAttributesClassName"):
        problem = "update from non-nil value to nil is forbidden"
        errors.append(field.forbidden("spec.volumeAttributesClassName", problem))
    return errors


def _mode(spec: core.PersistentVolumeSpec) -> str | None:
    return spec.volumeMode if spec.HasField("volumeMode") else None


def _affinity_change(new: core.PersistentVolumeSpec, old: core.PersistentVolumeSpec) -> list[Cause]:
    """It stays, though a label that Kubernetes has renamed may be called by its new name."""
    renamed = core.VolumeNodeAffinity()
    renamed.CopyFrom(old.nodeAffinity)
    terms = zip(renamed.required.nodeSelectorTerms, new.nodeAffinity.required.nodeSelectorTerms, strict=False)
    for before, after in terms:
        for part in ("matchExpressions", "matchFields"):
            for one, other in zip(getattr(before, part), getattr(after, part), strict=False):
                if one.key != other.key and _GA_LABELS.get(one.key) == other.key:
                    one.key = other.key
    if new.HasField("nodeAffinity") and same(renamed, new.nodeAffinity):
        return []
    value = dump(new.nodeAffinity) if new.HasField("nodeAffinity") else None
    problem = f"{field.IMMUTABLE}, except for updating from beta label to GA"
    return [field.invalid("nodeAffinity", value, problem)]


def volume_status_update(new: core.PersistentVolume, old: core.PersistentVolume) -> list[Cause]:
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    if not new.metadata.resourceVersion:
        errors.append(field.required("resourceVersion"))
    return errors


def storage_class(obj: storage.StorageClass) -> list[Cause]:
    """Beside its metadata."""
    errors: list[Cause] = []
    errors += provisioner("provisioner", obj.provisioner)
    errors += parameters(obj.parameters)
    if obj.reclaimPolicy and obj.reclaimPolicy not in ("Delete", "Retain"):
        errors.append(field.not_supported("reclaimPolicy", obj.reclaimPolicy, ("Delete", "Retain")))
    if not obj.HasField("volumeBindingMode"):
        errors.append(field.required("volumeBindingMode"))
    elif obj.volumeBindingMode not in _BINDING_MODES:
        errors.append(field.not_supported("volumeBindingMode", obj.volumeBindingMode, _BINDING_MODES))
    return errors + _topologies(obj)


def provisioner(path: str, name: str) -> list[Cause]:
    """Check the name of the driver that makes or changes volumes."""
    if not name:
        return [field.required(path)]
    return [field.invalid(path, name, problem) for problem in names.qualified_name(name.lower())]


def parameters(found: Mapping[str, str]) -> list[Cause]:
    """Check the parameters of a StorageClass or a VolumeAttributesClass."""
    if len(found) > _PARAMETERS_MAX:
        return [field.too_long("parameters", _PARAMETERS_MAX)]
    errors = [field.invalid("parameters", "", "field can not be empty.")] if "" in found else []
    if sum(len(key.encode()) + len(found[key].encode()) for key in found) > _PARAMETERS_BYTES_MAX:
        errors.append(field.too_long("parameters", _PARAMETERS_BYTES_MAX))
    return errors


def _topologies(obj: storage.StorageClass) -> list[Cause]:
    errors: list[Cause] = []
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(obj.allowedTopologies):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        found: dict[str, set[str]] = {}
        for number, expression in enumerate(term.matchLabelExpressions):
            at = f"{path}[{number}]"
            errors += _topology(at, expression)
            if expression.key in found:
                errors.append(field.duplicate(f"{at}.key", expression.key))
            found[expression.key] = set(expression.values)
        if found in seen:
            errors.append(field.duplicate(path, ""))
        seen.append(found)
    return errors


def _topology(path: str, expression: core.TopologySelectorLabelRequirement) -> list[Cause]:
    errors = [] if expression.values else [field.required(f"{path}.values")]
    seen: set[str] = set()
    for place, value in enumerate(expression.values):
        if value in seen:
            errors.append(field.duplicate(f"{path}.values[{place}]", value))
        seen.add(value)
    return errors + [
        field.invalid(f"{path}.key", expression.key, p) for p in names.qualified_name(expression.key)
    ]


def storage_class_update(new: storage.StorageClass, old: storage.StorageClass) -> list[Cause]:
    errors: list[Cause] = []
    if new.parameters != old.parameters:
        shown = dict(sorted(new.parameters.items())) or None
        errors.append(field.invalid("parameters", shown, field.IMMUTABLE))
    errors += field.immutable("provisioner", new.provisioner, old.provisioner)
    errors += field.immutable("reclaimPolicy", new.reclaimPolicy, old.reclaimPolicy)
    errors += field.immutable("volumeBindingMode", new.volumeBindingMode, old.volumeBindingMode)
    return errors
