"""PersistentVolumeClaims, and templates of them in pods (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core, meta
from nominee.machinery.resources.quantity import Quantity

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
# In the order of Go's struct.
_NOT_IN_TEMPLATES = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers",
    "managedFields",
)  # fmt: skip


def access_modes(path: str, modes: Sequence[str], missing: str) -> list[Cause]:
    """Check the access modes of a claim or volume; `missing` is the message for an empty list."""
    if not modes:
        return [field.required(path, missing)]
    errors = [field.not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(field.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def class_name(path: str, name: str) -> list[Cause]:
    return field.check(path, name, names.dns_subdomain) if name else []


def claim_template(path: str, template: core.PersistentVolumeClaimTemplate) -> list[Cause]:
    """Check the template of a pod's ephemeral volume: its labels, annotations and spec."""
    return [
        *_template_metadata(f"{path}.metadata", template.metadata),
        *claim_spec(f"{path}.spec", template.spec),
    ]


def _template_metadata(path: str, found: meta.ObjectMeta) -> Iterator[Cause]:
    yield from metadata.validate_annotations(f"{path}.annotations", found.annotations)
    yield from metadata.validate_labels(f"{path}.labels", found.labels)
    given = {descriptor.name for descriptor, value in found.ListFields() if value}
    if not found.creationTimestamp.ByteSize():
        given.discard("creationTimestamp")  # a struct in Go: an object that was decoded has it, as zero
    for name in _NOT_IN_TEMPLATES:
        if name in given:
            # Upstream makes the path from the Go name, with one small letter.
            shown = "uID" if name == "uid" else name
            yield field.forbidden(f"{path}.{shown}", "cannot be set")


def claim_spec(path: str, spec: core.PersistentVolumeClaimSpec) -> list[Cause]:
    """Check the spec of a claim, or of a template of claims."""
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
            errors += field.check(f"{at}.namespace", reference.namespace, names.dns_label)
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
) -> Iterator[Cause]:
    yield from (field.required(f"{path}.{name}") for name in ("name", "kind") if not getattr(source, name))
    if not source.apiGroup and source.kind != "PersistentVolumeClaim":
        problem = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield field.invalid(path, source.kind, problem)
    if source.apiGroup:
        yield from field.check(f"{path}.apiGroup", source.apiGroup, names.dns_subdomain)


def class_annotation_warnings(obj: core.PersistentVolume | core.PersistentVolumeClaim) -> Iterator[str]:
    """Yield the warning about the annotation that named the class before v1.8."""
    if CLASS_ANNOTATION in obj.metadata.annotations:
        text = 'deprecated since v1.8; use "storageClassName" attribute instead'
        yield f"metadata.annotations[{CLASS_ANNOTATION}]: {text}"
