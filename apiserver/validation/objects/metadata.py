"""Validation of every kind's metadata (apimachinery/pkg/api/validation/objectmeta.go 1.36)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.names import Problems
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import meta
from nominee.machinery.runtime.clock import rfc3339
from nominee.machinery.wire import codec

ANNOTATIONS_BYTES_MAX = 256 * 1024
FIELD_MANAGER_BYTES_MAX = 128
SUBRESOURCE_LENGTH_MAX = 256
PATH = "metadata"

NameRule = Callable[[str], Problems]

_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def validate_labels(path: str, values: Mapping[str, str]) -> list[Cause]:
    errors: list[Cause] = []
    for key, value in values.items():
        errors += field.check(path, key, names.qualified_name)
        errors += field.check(path, value, names.label_value)
    return errors


def validate_annotations(path: str, values: Mapping[str, str]) -> list[Cause]:
    """Check keys and the total size."""
    errors: list[Cause] = []
    size = 0
    for key, value in values.items():
        # Unlike labels, annotation keys may be upper case.
        errors += field.problems(path, key, names.qualified_name(key.lower()))
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_BYTES_MAX:
        errors.append(field.too_long(path, ANNOTATIONS_BYTES_MAX))
    return errors


def owner_references(path: str, references: Iterable[meta.OwnerReference]) -> list[Cause]:
    """Check owner references: complete, of allowed kinds, at most one controller."""
    errors: list[Cause] = []
    controller: meta.OwnerReference | None = None
    listed = list(references)
    for reference in listed:
        group, _, version = reference.apiVersion.rpartition("/")
        if not version:
            errors.append(
                field.invalid(f"{path}.apiVersion", reference.apiVersion, "version must not be empty")
            )
        if not reference.kind:
            errors.append(field.invalid(f"{path}.kind", reference.kind, "must not be empty"))
        if not reference.name:
            errors.append(field.invalid(f"{path}.name", reference.name, "must not be empty"))
        if not reference.uid:
            errors.append(field.invalid(f"{path}.uid", reference.uid, "must not be empty"))
        if not group and version == "v1" and reference.kind == "Event":
            errors.append(
                field.invalid(
                    path, codec.to_json(reference), "/v1, Kind=Event is disallowed from being an owner"
                )
            )
        if reference.controller:
            if controller is not None:
                first, second = (f"{r.kind}/{r.name}" for r in (controller, reference))
                errors.append(
                    field.invalid(
                        path,
                        [_shown(r) for r in listed],
                        "Only one reference can have Controller set to true."
                        f' Found "true" in references for {first} and {second}',
                    )
                )
            controller = reference
    return errors


def _shown(reference: meta.OwnerReference) -> dict[str, object]:
    return codec.to_json(reference)


def finalizers(path: str, values: Sequence[str]) -> list[Cause]:
    """Check that each is a qualified name; as upstream, without the index of the wrong one."""
    errors = [
        field.invalid(path, value, problem) for value in values for problem in names.qualified_name(value)
    ]
    if "orphan" in values and "foregroundDeletion" in values:
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(field.invalid(path, list(values), problem))
    return errors


def standard_finalizers(path: str, values: Sequence[str]) -> list[Cause]:
    """Check that finalizers without a domain are Kubernetes' own, as most kinds require."""
    problem = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        field.invalid(f"{path}[{index}]", value, problem)
        for index, value in enumerate(values)
        if "/" not in value and value not in _FINALIZERS
    ]


def field_manager(path: str, manager: str) -> list[Cause]:
    """Check the name of a field manager, in options or in managedFields."""
    errors: list[Cause] = []
    if len(manager.encode()) > FIELD_MANAGER_BYTES_MAX:
        errors.append(field.too_long(path, FIELD_MANAGER_BYTES_MAX))
    if not manager.isprintable():
        position = 0  # in bytes, as Go counts
        for character in manager:
            if not character.isprintable():
                problem = f"invalid character U+{ord(character):04X} (at position {position})"
                errors.append(field.invalid(path, manager, problem))
            position += len(character.encode())
    return errors


def _managed_fields(path: str, entries: Iterable[meta.ManagedFieldsEntry]) -> list[Cause]:
    """Check entries of managedFields; those that cannot be read are refused earlier."""
    errors: list[Cause] = []
    for index, entry in enumerate(entries):
        errors += field_manager(f"{path}[{index}].manager", entry.manager)
        if len(entry.subresource.encode()) > SUBRESOURCE_LENGTH_MAX:
            errors.append(field.too_long(f"{path}[{index}].subresource", SUBRESOURCE_LENGTH_MAX))
    return errors


def object_meta(
    metadata: meta.ObjectMeta,
    *,
    namespaced: bool,
    name_rule: NameRule = names.path_segment,
    path: str = PATH,
    standard: bool = True,
) -> list[Cause]:
    """Check the metadata of an object; `name_rule` is the rule of the name and of the prefix in generateName.

    `standard`: finalizers without a domain must be Kubernetes' own.
    """
    errors: list[Cause] = []
    if metadata.generateName:
        # A prefix may end with the character that a name may not end with.
        prefix = metadata.generateName
        if name_rule is not names.path_segment:
            prefix = names.mask_trailing_dash(prefix)
        errors += field.problems(f"{path}.generateName", metadata.generateName, name_rule(prefix))
    if not metadata.name:
        errors.append(field.required(f"{path}.name", "name or generateName is required"))
    else:
        errors += field.check(f"{path}.name", metadata.name, name_rule)
    if namespaced:
        if not metadata.namespace:
            errors.append(field.required(f"{path}.namespace"))
        else:
            errors += field.check(f"{path}.namespace", metadata.namespace, names.dns_label)
    elif metadata.namespace:
        errors.append(field.forbidden(f"{path}.namespace", "not allowed on this type"))
    errors += _common(metadata, path)
    if standard and metadata.finalizers:
        errors += standard_finalizers(f"{path}.finalizers", metadata.finalizers)
    return errors


def _common(metadata: meta.ObjectMeta, path: str) -> list[Cause]:
    errors: list[Cause] = []
    if metadata.generation < 0:
        errors += field.non_negative(f"{path}.generation", metadata.generation)
    if metadata.labels:
        errors += validate_labels(f"{path}.labels", metadata.labels)
    if metadata.annotations:
        errors += validate_annotations(f"{path}.annotations", metadata.annotations)
    if metadata.ownerReferences:
        errors += owner_references(f"{path}.ownerReferences", metadata.ownerReferences)
    if metadata.finalizers:
        errors += finalizers(f"{path}.finalizers", metadata.finalizers)
    if metadata.managedFields:
        errors += _managed_fields(f"{path}.managedFields", metadata.managedFields)
    return errors


def object_meta_update(
    new: meta.ObjectMeta, old: meta.ObjectMeta, path: str = PATH, *, standard: bool = True
) -> list[Cause]:
    """Check that an update leaves immutable metadata as it is; `standard` as in `object_meta`."""
    errors: list[Cause] = []
    if old.HasField("deletionTimestamp"):
        added = set(new.finalizers) - set(old.finalizers)
        if added:
            listed = sorted(added)
            errors.append(
                field.forbidden(
                    f"{path}.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new finalizers"
                    f" []string{{{', '.join(field.shown(value) for value in listed)}}}",
                )
            )
    if not new.resourceVersion:
        errors.append(
            field.invalid(f"{path}.resourceVersion", new.resourceVersion, "must be specified for an update")
        )
    if new.generation < old.generation:
        errors.append(field.invalid(f"{path}.generation", new.generation, "must not be decremented"))
    errors += field.immutable(f"{path}.name", new.name, old.name)
    errors += field.immutable(f"{path}.namespace", new.namespace, old.namespace)
    errors += field.immutable(f"{path}.uid", new.uid, old.uid)
    if new.creationTimestamp != old.creationTimestamp:
        errors.append(_time_changed(f"{path}.creationTimestamp", new.creationTimestamp))
    if new.HasField("deletionTimestamp") != old.HasField("deletionTimestamp") or (
        new.deletionTimestamp != old.deletionTimestamp
    ):
        errors.append(_time_changed(f"{path}.deletionTimestamp", new.deletionTimestamp))
    grace = new.deletionGracePeriodSeconds if new.HasField("deletionGracePeriodSeconds") else None
    old_grace = old.deletionGracePeriodSeconds if old.HasField("deletionGracePeriodSeconds") else None
    errors += field.immutable(f"{path}.deletionGracePeriodSeconds", grace, old_grace)
    if new.labels:
        errors += validate_labels(f"{path}.labels", new.labels)
    if new.annotations:
        errors += validate_annotations(f"{path}.annotations", new.annotations)
    if new.ownerReferences:
        errors += owner_references(f"{path}.ownerReferences", new.ownerReferences)
    if standard and new.finalizers:
        errors += standard_finalizers(f"{path}.finalizers", new.finalizers)
    return errors


def _time_changed(path: str, value: meta.Time) -> Cause:
    return field.invalid(path, rfc3339(value) if value.seconds else None, field.IMMUTABLE)
