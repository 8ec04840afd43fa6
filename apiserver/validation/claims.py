"""PersistentVolumeClaims, and templates of them in pods (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.validation import field, metadata, names, quantities
from apiserver.validation.equality import same
from apiserver.validation.selectors import label_selector
from machinery.api.errors import Cause
from machinery.api.pb import core, meta
from machinery.resources.quantity import Quantity

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
    " claims"
)
_RESIZE_STATES = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
    "NodeResizeInfeasible", "NodeResizePending",
)  # fmt: skip
# In the order of Go's struct.
_NOT_IN_TEMPLATES = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers",
    "managedFields",
)  # fmt: skip


def access_modes(path: str, modes: Sequence[str], missing: str) -> list[Cause]:
    """Of claims and volumes; `missing` says what upstream says of none."""
    if not modes:
        return [field.required(path, missing)]
    errors = [field.not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(field.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def class_name(path: str, name: str) -> list[Cause]:
    return [field.invalid(path, name, problem) for problem in names.dns_subdomain(name)] if name else []


def claim(obj: core.PersistentVolumeClaim) -> list[Cause]:
    """The spec."""
    return claim_spec("spec", obj.spec)


def claim_template(path: str, template: core.PersistentVolumeClaimTemplate) -> list[Cause]:
    """What a pod's ephemeral volume is made from; of its metadata only labels and annotations are used."""
    return _template_metadata(f"{path}.metadata", template.metadata) + claim_spec(
        f"{path}.spec", template.spec
    )


def _template_metadata(path: str, found: meta.ObjectMeta) -> list[Cause]:
    errors = metadata.validate_annotations(f"{path}.annotations", found.annotations)
    errors += metadata.validate_labels(f"{path}.labels", found.labels)
    given = {descriptor.name for descriptor, value in found.ListFields() if value}
    for name in _NOT_IN_TEMPLATES:
        if name in given:
            # Upstream makes the path from the Go name, with one small letter.
            shown = "uID" if name == "uid" else name
            errors.append(field.forbidden(f"{path}.{shown}", "cannot be set"))
    return errors


def claim_spec(path: str, spec: core.PersistentVolumeClaimSpec) -> list[Cause]:
    """Of a claim, or of a template of claims."""
    missing = "at least 1 access mode is required"
    errors = [] if spec.accessModes else [field.required(f"{path}.accessModes", missing)]
    if spec.HasField("selector"):
        errors += label_selector(f"{path}.selector", spec.selector)
    if spec.accessModes:
        errors += access_modes(f"{path}.accessModes", spec.accessModes, missing)
    at = f"{path}.resources[storage]"
    if "storage" not in spec.resources.requests:
        errors.append(field.required(at))
    else:
        text = spec.resources.requests["storage"].string
        if Quantity.parse(text).sign <= 0:
            errors.append(field.invalid(at, text, "must be greater than zero"))
    if spec.HasField("storageClassName"):
        errors += class_name(f"{path}.storageClassName", spec.storageClassName)
    if spec.HasField("volumeMode") and spec.volumeMode not in VOLUME_MODES:
        errors.append(field.not_supported(f"{path}.volumeMode", spec.volumeMode, VOLUME_MODES))
    errors += _data_sources(path, spec)
    if spec.HasField("volumeAttributesClassName"):
        errors += class_name(f"{path}.volumeAttributesClassName", spec.volumeAttributesClassName)
    return errors


def _data_sources(path: str, spec: core.PersistentVolumeClaimSpec) -> list[Cause]:
    errors: list[Cause] = []
    if spec.HasField("dataSource"):
        errors += _data_source(f"{path}.dataSource", spec.dataSource)
    if spec.HasField("dataSourceRef"):
        reference, at = spec.dataSourceRef, f"{path}.dataSourceRef"
        errors += _data_source(at, reference)
        if reference.namespace:
            errors += [
                field.invalid(f"{at}.namespace", reference.namespace, problem)
                for problem in names.dns_label(reference.namespace)
            ]
    if not (spec.HasField("dataSource") and spec.HasField("dataSourceRef")):
        return errors
    if spec.dataSourceRef.namespace:
        problem = "may not be specified when dataSourceRef.namespace is specified"
        return [*errors, field.invalid(path, {}, problem)]
    one, other = (
        (each.HasField("apiGroup"), each.apiGroup, each.kind, each.name)
        for each in (spec.dataSource, spec.dataSourceRef)
    )
    # The value that upstream shows is a path, which has no fields to show.
    return errors if one == other else [*errors, field.invalid(path, {}, "must match dataSourceRef")]


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


def claim_change(new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim) -> list[Cause]:
    """A claim may be bound (volumeName set), given its class, and when bound be expanded."""
    errors: list[Cause] = []
    spec, before = core.PersistentVolumeClaimSpec(), old.spec
    spec.CopyFrom(new.spec)
    bound = new.status.phase == "Bound"
    if not before.volumeName:
        spec.volumeName = before.volumeName
    errors += _class_change(spec, new, old)
    if bound and "storage" in before.resources.requests and spec.resources.requests:
        spec.resources.requests["storage"].CopyFrom(before.resources.requests["storage"])
    if bound and spec.HasField("volumeAttributesClassName"):
        spec.ClearField("volumeAttributesClassName")
        if before.HasField("volumeAttributesClassName"):
            spec.volumeAttributesClassName = before.volumeAttributesClassName
    if not same(spec, before):
        errors.append(field.forbidden("spec", _CLAIM_IMMUTABLE))
    asked, had = _storage(new.spec.resources.requests), _storage(before.resources.requests)
    # An expansion that failed may be taken back, but not below what there is.
    if asked < had and asked <= _storage(old.status.capacity):
        problem = "field can not be less than status.capacity"
        errors.append(field.forbidden("spec.resources.requests.storage", problem))
    if new.spec.volumeMode != before.volumeMode:
        errors += field.immutable("volumeMode", new.spec.volumeMode, before.volumeMode)
    if before.HasField("volumeAttributesClassName") and not new.spec.volumeAttributesClassName:
        if not new.spec.HasField("volumeAttributesClassName"):
            what = "nil is forbidden"
        elif before.volumeAttributesClassName:
            what = "an empty string is forbidden"
        else:
            return errors
        problem = f"update from non-nil value to {what}"
        errors.append(field.forbidden("spec.volumeAttributesClassName", problem))
    return errors


def _storage(amounts: quantities.ResourceList) -> Quantity:
    return Quantity.parse(amounts["storage"].string if "storage" in amounts else "0")


def _class_change(
    spec: core.PersistentVolumeClaimSpec, new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim
) -> list[Cause]:
    """Takes out of `spec` a class that may be given now: none was there, or the annotation said the same."""
    before, after = old.metadata.annotations, new.metadata.annotations
    gets = new.spec.HasField("storageClassName") and not old.spec.HasField("storageClassName")
    if gets and CLASS_ANNOTATION in before and before[CLASS_ANNOTATION] == new.spec.storageClassName:
        spec.ClearField("storageClassName")
        if after.get(CLASS_ANNOTATION, before[CLASS_ANNOTATION]) == before[CLASS_ANNOTATION]:
            return []
    elif gets and CLASS_ANNOTATION not in before:
        spec.ClearField("storageClassName")
    return field.immutable(
        f"metadata.annotations.{CLASS_ANNOTATION}",
        after.get(CLASS_ANNOTATION, ""),
        before.get(CLASS_ANNOTATION, ""),
    )


def claim_status_update(new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim) -> list[Cause]:
    errors = metadata.object_meta_update(new.metadata, old.metadata)
    if not new.metadata.resourceVersion:
        errors.append(field.required("resourceVersion"))
    if not new.spec.accessModes:
        errors.append(field.required("Spec.accessModes"))
    for name in sorted(new.status.capacity):
        errors += quantities.basic(f"status.capacity[{name}]", new.status.capacity[name])
    at = "status.allocatedResourceStatus"
    for name in sorted(new.status.allocatedResourceStatuses):
        errors += _resource_key(at, name)
        if new.status.allocatedResourceStatuses[name] not in _RESIZE_STATES:
            errors.append(field.not_supported(at, name, _RESIZE_STATES))
    for name in sorted(new.status.allocatedResources):
        quantity = new.status.allocatedResources[name]
        errors += _resource_key("status.allocatedResources", name) or quantities.basic(
            f"status.allocatedResources[{name}]", quantity
        )
    return errors


def _resource_key(path: str, name: str) -> list[Cause]:
    """Of Kubernetes' own resources a claim has storage only."""
    errors = [field.invalid(path, name, problem) for problem in names.qualified_name(name)]
    if not errors and quantities.is_native(name) and name != "storage":
        errors.append(field.not_supported(path, name, ("storage",)))
    return errors
