"""PersistentVolumeClaims (kube-apiserver 1.36, ValidatePersistentVolumeClaim; registry/core)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.printing.cells import UNSET, shown_access_modes, shown_attributes_class
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import claims, field, names
from nominee.apiserver.validation.equality import same
from nominee.apiserver.validation.objects import metadata as metadata_rules
from nominee.apiserver.validation.pods import warnings as pod_warnings
from nominee.apiserver.validation.spec_diff import diff
from nominee.apiserver.validation.values import quantities
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import Quantity

_CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
    " claims"
)
_RESIZE_STATES = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
    "NodeResizeInfeasible", "NodeResizePending",
)  # fmt: skip
_DATA_SOURCES = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})


class ClaimStrategy(Strategy[core.PersistentVolumeClaim]):
    """The main resource."""

    def prepare_for_create(self, new: core.PersistentVolumeClaim, env: Environment) -> None:
        super().prepare_for_create(new, env)
        new.status.phase = "Pending"
        _prepare_data_source(new.spec, core.PersistentVolumeClaimSpec())

    def prepare_for_update(
        self, new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim, env: Environment
    ) -> None:
        super().prepare_for_update(new, old, env)
        _prepare_data_source(new.spec, old.spec)

    def validate(self, new: core.PersistentVolumeClaim, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + claims.claim_spec("spec", new.spec)

    def validate_update(
        self, new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim, env: Environment
    ) -> list[Cause]:
        # Upstream looks at the whole twice.
        found = self.validate(new, env)
        changed = metadata_rules.object_meta_update(new.metadata, old.metadata)
        return [*found, *changed, *found, *_validate_change(new, old)]

    def warnings(
        self, new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim | None
    ) -> Sequence[str]:
        return tuple(_warnings(new))


def _prepare_data_source(spec: core.PersistentVolumeClaimSpec, old: core.PersistentVolumeClaimSpec) -> None:
    """Drop a source that is ignored, and complete the other: clients may know only one of its fields."""
    if spec.dataSourceRef.namespace and not old.HasField("dataSourceRef"):
        # Upstream's CrossNamespaceVolumeDataSource is off by default, and not emulated.
        spec.ClearField("dataSourceRef")
    names_source = old.HasField("dataSource") or any(each.HasField("dataSourceRef") for each in (spec, old))
    if not names_source and (spec.dataSource.apiGroup, spec.dataSource.kind) not in _DATA_SOURCES:
        spec.ClearField("dataSource")
    _same_data_source(spec)


def _same_data_source(spec: core.PersistentVolumeClaimSpec) -> None:
    """Set dataSource to dataSourceRef or the other way round; only the latter can be in another namespace."""
    if spec.HasField("dataSource") and not spec.HasField("dataSourceRef"):
        source, reference = spec.dataSource, spec.dataSourceRef
        if source.HasField("apiGroup"):
            reference.apiGroup = source.apiGroup
        reference.kind, reference.name = source.kind, source.name
    elif (
        spec.HasField("dataSourceRef")
        and not spec.HasField("dataSource")
        and not spec.dataSourceRef.namespace
    ):
        source, reference = spec.dataSource, spec.dataSourceRef
        if reference.HasField("apiGroup"):
            source.apiGroup = reference.apiGroup
        source.kind, source.name = reference.kind, reference.name


def _validate_change(new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim) -> Iterator[Cause]:
    """A claim may be bound (volumeName set), given its class, and when bound be expanded."""
    spec, before = core.PersistentVolumeClaimSpec(), core.PersistentVolumeClaimSpec()
    spec.CopyFrom(new.spec)
    before.CopyFrom(old.spec)
    _same_data_source(before)
    bound = new.status.phase == "Bound"
    if not before.volumeName:
        before.volumeName = spec.volumeName
    yield from _class_change(spec, new, old)
    if bound and "storage" in before.resources.requests and spec.resources.requests:
        spec.resources.requests["storage"].CopyFrom(before.resources.requests["storage"])
    if bound and spec.HasField("volumeAttributesClassName"):
        spec.ClearField("volumeAttributesClassName")
        if before.HasField("volumeAttributesClassName"):
            spec.volumeAttributesClassName = before.volumeAttributesClassName
    if not same(spec, before):
        yield field.forbidden("spec", f"{_CLAIM_IMMUTABLE}\n{diff(before, spec)}")
    asked, had = _storage(new.spec.resources.requests), _storage(before.resources.requests)
    # An expansion that failed may be taken back, but not below what there is.
    if asked < had and asked <= _storage(old.status.capacity):
        yield field.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    if new.spec.volumeMode != before.volumeMode:
        yield from field.immutable("volumeMode", new.spec.volumeMode, before.volumeMode)
    if before.HasField("volumeAttributesClassName") and not new.spec.volumeAttributesClassName:
        if not new.spec.HasField("volumeAttributesClassName"):
            what = "nil is forbidden"
        elif before.volumeAttributesClassName:
            what = "an empty string is forbidden"
        else:
            return
        yield field.forbidden("spec.volumeAttributesClassName", f"update from non-nil value to {what}")


def _storage(amounts: quantities.ResourceList) -> Quantity:
    return Quantity.parse(amounts["storage"].string if "storage" in amounts else "0")


def _class_change(
    spec: core.PersistentVolumeClaimSpec, new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim
) -> list[Cause]:
    """Takes out of `spec` a class that may be given now: none was there, or the annotation said the same."""
    before, after = old.metadata.annotations, new.metadata.annotations
    gets = new.spec.HasField("storageClassName") and not old.spec.HasField("storageClassName")
    if (
        gets
        and claims.CLASS_ANNOTATION in before
        and before[claims.CLASS_ANNOTATION] == new.spec.storageClassName
    ):
        spec.ClearField("storageClassName")
        if (
            after.get(claims.CLASS_ANNOTATION, before[claims.CLASS_ANNOTATION])
            == before[claims.CLASS_ANNOTATION]
        ):
            return []
    elif gets and claims.CLASS_ANNOTATION not in before:
        spec.ClearField("storageClassName")
    return field.immutable(
        f"metadata.annotations.{claims.CLASS_ANNOTATION}",
        after.get(claims.CLASS_ANNOTATION, ""),
        before.get(claims.CLASS_ANNOTATION, ""),
    )


def _validate_status(new: core.PersistentVolumeClaim, old: core.PersistentVolumeClaim) -> list[Cause]:
    errors: list[Cause] = []
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
    errors = field.check(path, name, names.qualified_name)
    if not errors and quantities.is_native(name) and name != "storage":
        errors.append(field.not_supported(path, name, ("storage",)))
    return errors


def _warnings(claim: core.PersistentVolumeClaim) -> Iterator[str]:
    yield from claims.class_annotation_warnings(claim)
    yield from pod_warnings.of_claim(claim.spec, "spec")


def _row(claim: core.PersistentVolumeClaim, now: float) -> Cells:
    spec, status = claim.spec, claim.status
    phase = "Terminating" if claim.metadata.HasField("deletionTimestamp") else status.phase
    capacity = modes = ""
    if spec.volumeName:
        modes = shown_access_modes(status.accessModes)
        capacity = status.capacity["storage"].string if "storage" in status.capacity else "0"
    storage_class = claim.metadata.annotations.get("volume.beta.kubernetes.io/storage-class", "")
    return [
        phase,
        spec.volumeName,
        capacity,
        modes,
        storage_class or spec.storageClassName,
        shown_attributes_class(spec),
        spec.volumeMode or UNSET,
    ]


RULES = KindRules(
    kind=kinds.PERSISTENT_VOLUME_CLAIM,
    strategy=ClaimStrategy(
        kinds.PERSISTENT_VOLUME_CLAIM,
        {"status": StatusStrategy(kinds.PERSISTENT_VOLUME_CLAIM, _validate_status)},
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Status", "persistentvolumeclaimstatus-v1#phase"),
        Column("Volume", "persistentvolumeclaimspec-v1#volumeName"),
        Column("Capacity", "persistentvolumeclaimstatus-v1#capacity"),
        Column("Access Modes", "persistentvolumeclaimstatus-v1#accessModes"),
        Column("StorageClass", "StorageClass of the pvc"),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
        AGE,
        wide("VolumeMode", "persistentvolumeclaimspec-v1#volumeMode"),
    ),
    delete_response=DeleteResponse.OBJECT,
)
