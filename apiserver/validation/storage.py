"""Claims, volumes and storage classes (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.validation import field, metadata, names, paths, quantities
from apiserver.validation.scheduling_terms import node_selector
from apiserver.validation.selectors import label_selector
from apiserver.validation.volume_sources import SOURCES
from apiserver.validation.volumes import host_path, one_source
from machinery.errors import Cause
from machinery.pb import core, storage
from machinery.quantity import Quantity

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_RECLAIM = ("Delete", "Recycle", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
    " claims"
)


def _access_modes(path: str, modes: Sequence[str]) -> list[Cause]:
    if not modes:
        return [field.required(path, "at least 1 access mode is required")]
    errors = [field.not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        errors.append(field.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _class_name(path: str, name: str) -> list[Cause]:
    return [field.invalid(path, name, problem) for problem in names.dns_subdomain(name)] if name else []


def claim(obj: core.PersistentVolumeClaim) -> list[Cause]:
    """The spec."""
    return claim_spec("spec", obj.spec)


def claim_spec(path: str, spec: core.PersistentVolumeClaimSpec) -> list[Cause]:
    """Of a claim, or of a template of claims."""
    errors: list[Cause] = []
    if spec.HasField("selector"):
        errors += label_selector(f"{path}.selector", spec.selector)
    errors += _access_modes(f"{path}.accessModes", spec.accessModes)
    at = f"{path}.resources[storage]"
    if "storage" not in spec.resources.requests:
        errors.append(field.required(at))
    else:
        text = spec.resources.requests["storage"].string
        if Quantity.parse(text).sign <= 0:
            errors.append(field.invalid(at, text, "must be greater than zero"))
    if spec.HasField("storageClassName"):
        errors += _class_name(f"{path}.storageClassName", spec.storageClassName)
    if spec.HasField("volumeMode") and spec.volumeMode not in _VOLUME_MODES:
        errors.append(field.not_supported(f"{path}.volumeMode", spec.volumeMode, _VOLUME_MODES))
    for name in ("dataSource", "dataSourceRef"):
        if spec.HasField(name):
            errors += _data_source(f"{path}.{name}", getattr(spec, name))
    if spec.HasField("dataSource") and spec.HasField("dataSourceRef"):
        one, other = ((each.apiGroup, each.kind, each.name) for each in (spec.dataSource, spec.dataSourceRef))
        if one != other:
            errors.append(field.invalid(path, f"{path}.dataSource", "must match dataSourceRef"))
    if spec.HasField("volumeAttributesClassName"):
        errors += _class_name(f"{path}.volumeAttributesClassName", spec.volumeAttributesClassName)
    return errors


def _data_source(
    path: str, source: core.TypedLocalObjectReference | core.TypedObjectReference
) -> list[Cause]:
    errors = [field.required(f"{path}.{name}") for name in ("name", "kind") if not getattr(source, name)]
    if not source.apiGroup and source.kind != "PersistentVolumeClaim":
        problem = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(field.invalid(path, source.kind, problem))
    if source.apiGroup:
        errors += [
            field.invalid(f"{path}.apiGroup", source.apiGroup, problem)
            for problem in names.dns_subdomain(source.apiGroup)
        ]
    return errors


def claim_update(new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim) -> list[Cause]:
    """A claim may be bound (volumeName set), expanded when bound, and given its default class."""
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    spec, before = core.PersistentVolumeClaimSpec(), old.spec
    spec.CopyFrom(new.spec)
    bound = old.status.phase == "Bound"
    if not before.volumeName:
        spec.volumeName = before.volumeName
    if bound and "storage" in new.spec.resources.requests and "storage" in before.resources.requests:
        spec.resources.requests["storage"].CopyFrom(before.resources.requests["storage"])
        asked = Quantity.parse(new.spec.resources.requests["storage"].string)
        had = Quantity.parse(before.resources.requests["storage"].string)
        in_status = old.status.capacity
        capacity = Quantity.parse(in_status["storage"].string) if "storage" in in_status else None
        # An expansion that failed may be taken back, but not below what there is.
        if asked < had and (capacity is None or asked <= capacity):
            problem = "field can not be less than status.capacity"
            errors.append(field.forbidden("spec.resources.requests.storage", problem))
    if not before.HasField("storageClassName") and new.spec.HasField("storageClassName") and not bound:
        spec.ClearField("storageClassName")
    if spec.HasField("volumeAttributesClassName") or before.HasField("volumeAttributesClassName"):
        spec.ClearField("volumeAttributesClassName")
        if before.HasField("volumeAttributesClassName"):
            spec.volumeAttributesClassName = before.volumeAttributesClassName
    if spec != before:
        errors.append(field.forbidden("spec", _CLAIM_IMMUTABLE))
    if new.spec.volumeMode != before.volumeMode:
        errors += field.immutable("volumeMode", new.spec.volumeMode, before.volumeMode)
    return errors


def claim_status_update(new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim) -> list[Cause]:
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    if not new.metadata.resourceVersion:
        errors.append(field.required("resourceVersion"))
    if not new.spec.accessModes:
        errors.append(field.required("Spec.accessModes"))
    for name in new.status.capacity:
        quantity = new.status.capacity[name]
        errors += quantities.amount(f"status.capacity[{name}]", name, quantity)
    return errors


def volume(obj: core.PersistentVolume) -> list[Cause]:
    """The spec."""
    spec = obj.spec
    errors = _access_modes("spec.accessModes", spec.accessModes)
    if not spec.capacity:
        errors.append(field.required("spec.capacity"))
    if "storage" not in spec.capacity or len(spec.capacity) > 1:
        value = {name: spec.capacity[name].string for name in sorted(spec.capacity)} or None
        errors.append(field.not_supported("spec.capacity", value, ("storage",)))
    for name in spec.capacity:
        at, text = f"spec.capacity[{name}]", spec.capacity[name].string
        errors += quantities.amount(at, name, spec.capacity[name])
        if Quantity.parse(text).sign <= 0:
            errors.append(field.invalid(at, text, "must be greater than zero"))
    if spec.persistentVolumeReclaimPolicy and spec.persistentVolumeReclaimPolicy not in _RECLAIM:
        errors.append(
            field.not_supported(
                "spec.persistentVolumeReclaimPolicy", spec.persistentVolumeReclaimPolicy, _RECLAIM
            )
        )
    if spec.HasField("nodeAffinity"):
        if spec.nodeAffinity.HasField("required"):
            errors += node_selector("spec.nodeAffinity.required", spec.nodeAffinity.required)
        else:
            errors.append(
                field.required("spec.nodeAffinity.required", "must specify required node constraints")
            )
    source = spec.persistentVolumeSource
    errors += one_source("spec", [descriptor.name for descriptor, _ in source.ListFields()])
    errors += _volume_source(spec)
    errors += _class_name("spec.storageClassName", spec.storageClassName)
    if spec.HasField("volumeMode") and spec.volumeMode not in _VOLUME_MODES:
        errors.append(field.not_supported("spec.volumeMode", spec.volumeMode, _VOLUME_MODES))
    return errors


_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def _volume_source(spec: core.PersistentVolumeSpec) -> list[Cause]:
    errors: list[Cause] = []
    source = spec.persistentVolumeSource
    if source.HasField("hostPath"):
        errors += host_path("spec.hostPath", source.hostPath)
        if source.hostPath.path.rstrip("/") == "" and spec.persistentVolumeReclaimPolicy == "Recycle":
            problem = "may not be 'recycle' for a hostPath mount of '/'"
            errors.append(field.forbidden("spec.persistentVolumeReclaimPolicy", problem))
    if source.HasField("local"):
        if not source.local.path:
            errors.append(field.required("spec.local.path"))
        else:
            errors += paths.no_backsteps("spec.local.path", source.local.path)
        if not spec.HasField("nodeAffinity"):
            errors.append(field.required("spec.nodeAffinity", "Local volume requires node affinity"))
    if source.HasField("csi"):
        # Upstream wants a DNS name; the delayed provisioner's own name has a slash.
        if not source.csi.driver:
            errors.append(field.required("spec.csi.driver"))
        if not source.csi.volumeHandle:
            errors.append(field.required("spec.csi.volumeHandle"))
        for name in _SECRETS:
            if source.csi.HasField(name):
                errors += _secret_reference(f"spec.csi.{name}", getattr(source.csi, name))
    for descriptor, value in source.ListFields():
        if descriptor.name not in ("hostPath", "local", "csi"):
            errors += SOURCES[descriptor.name](f"spec.{descriptor.name}", value)
    return errors


def _secret_reference(path: str, reference: core.SecretReference) -> list[Cause]:
    return [
        field.required(f"{path}.{name}") for name in ("name", "namespace") if not getattr(reference, name)
    ]


def volume_update(new: core.PersistentVolume, old: core.PersistentVolume) -> list[Cause]:
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    if new.spec.persistentVolumeSource != old.spec.persistentVolumeSource:
        errors.append(
            field.forbidden(
                "spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"
            )
        )
    errors += field.immutable("volumeMode", new.spec.volumeMode, old.spec.volumeMode)
    if old.spec.HasField("nodeAffinity") and new.spec.nodeAffinity != old.spec.nodeAffinity:
        errors.append(field.invalid("spec.nodeAffinity", field.OMIT, field.IMMUTABLE))
    return errors


def storage_class(obj: storage.StorageClass) -> list[Cause]:
    errors: list[Cause] = []
    if not obj.provisioner:
        errors.append(field.required("provisioner", obj.provisioner))
    else:
        errors += [
            field.invalid("provisioner", obj.provisioner, problem)
            for problem in names.qualified_name(obj.provisioner.lower())
        ]
    for key in obj.parameters:
        if not key:
            errors.append(field.invalid("parameters", key, "field can not be empty."))
    if obj.reclaimPolicy not in ("Delete", "Retain"):
        errors.append(field.not_supported("reclaimPolicy", obj.reclaimPolicy, ("Delete", "Retain")))
    if not obj.HasField("volumeBindingMode"):
        errors.append(field.required("volumeBindingMode"))
    elif obj.volumeBindingMode not in _BINDING_MODES:
        errors.append(field.not_supported("volumeBindingMode", obj.volumeBindingMode, _BINDING_MODES))
    return errors + _topologies(obj)


def _topologies(obj: storage.StorageClass) -> list[Cause]:
    errors: list[Cause] = []
    for index, term in enumerate(obj.allowedTopologies):
        for number, expression in enumerate(term.matchLabelExpressions):
            at = f"allowedTopologies[{index}].matchLabelExpressions[{number}]"
            errors += [
                field.invalid(f"{at}.key", expression.key, p) for p in names.qualified_name(expression.key)
            ]
            if not expression.values:
                errors.append(field.required(f"{at}.values"))
            seen: set[str] = set()
            for place, value in enumerate(expression.values):
                if value in seen:
                    errors.append(field.duplicate(f"{at}.values[{place}]", value))
                seen.add(value)
    return errors


def storage_class_update(new: storage.StorageClass, old: storage.StorageClass) -> list[Cause]:
    errors: list[Cause] = []
    if new.parameters != old.parameters:
        errors.append(field.forbidden("parameters", "updates to parameters are forbidden."))
    if new.provisioner != old.provisioner:
        errors.append(field.forbidden("provisioner", "updates to provisioner are forbidden."))
    errors += field.immutable("reclaimPolicy", new.reclaimPolicy, old.reclaimPolicy)
    errors += field.immutable("volumeBindingMode", new.volumeBindingMode, old.volumeBindingMode)
    return errors
