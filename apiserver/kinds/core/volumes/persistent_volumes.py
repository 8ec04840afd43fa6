"""PersistentVolumes (kube-apiserver 1.36, ValidatePersistentVolume; registry/core/persistentvolume)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from nominee.apiserver.kinds.core.volumes.persistent_volume_sources import persistent_source
from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.printing.cells import UNSET, shown_access_modes, shown_attributes_class
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns, wide
from nominee.apiserver.validation import claims, field
from nominee.apiserver.validation.claims import VOLUME_MODES, access_modes, class_name
from nominee.apiserver.validation.equality import same
from nominee.apiserver.validation.go_dump import dump
from nominee.apiserver.validation.pods import warnings as pod_warnings
from nominee.apiserver.validation.scheduling_terms import node_selector
from nominee.apiserver.validation.spec_diff import diff
from nominee.apiserver.validation.values import quantities
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import Quantity

PersistentVolume = core.PersistentVolume

_RECLAIM = ("Delete", "Recycle", "Retain")
_GA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options"
_VOLUME_TYPES = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}


class VolumeStrategy(Strategy[PersistentVolume]):
    """The main resource."""

    def prepare_for_create(self, new: PersistentVolume, env: Environment) -> None:
        super().prepare_for_create(new, env)
        new.status.phase = "Pending"
        new.status.lastPhaseTransitionTime.CopyFrom(env.now)

    def validate(self, new: PersistentVolume, env: Environment) -> list[Cause]:
        return self.validate_metadata(new) + _validate(new)

    def validate_update(self, new: PersistentVolume, old: PersistentVolume, env: Environment) -> list[Cause]:
        # Upstream looks at the whole twice.
        found = self.validate(new, env)
        return [*found, *found, *_validate_change(new, old)]

    def warnings(self, new: PersistentVolume, old: PersistentVolume | None) -> Sequence[str]:
        return tuple(_warnings(new))


class VolumeStatusStrategy(StatusStrategy[PersistentVolume]):
    """PUT of `status`: the server sets the time of a new phase."""

    def prepare_for_update(self, new: PersistentVolume, old: PersistentVolume, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
        # The time of the phase is the server's (PersistentVolumeLastPhaseTransitionTime, GA in 1.31).
        if new.status.phase != old.status.phase:
            if new.status.lastPhaseTransitionTime == old.status.lastPhaseTransitionTime:
                new.status.lastPhaseTransitionTime.CopyFrom(env.now)
        elif not new.status.HasField("lastPhaseTransitionTime") and old.status.HasField(
            "lastPhaseTransitionTime"
        ):
            new.status.lastPhaseTransitionTime.CopyFrom(old.status.lastPhaseTransitionTime)


def _validate(obj: PersistentVolume) -> list[Cause]:
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
    return [*errors, *_attributes_class(spec)]


def _capacity(amounts: quantities.ResourceList) -> Iterator[Cause]:
    if not amounts:
        yield field.required("spec.capacity")
    if "storage" not in amounts or len(amounts) > 1:
        value = {name: amounts[name].string for name in sorted(amounts)} or None
        yield field.not_supported("spec.capacity", value, ("storage",))
    for name in sorted(amounts):
        at, text = f"spec.capacity[{name}]", amounts[name].string
        yield from quantities.basic(at, amounts[name])
        if Quantity.parse(text).sign <= 0:
            yield field.invalid(at, text, "must be greater than zero")


def _attributes_class(spec: core.PersistentVolumeSpec) -> Iterator[Cause]:
    if not spec.HasField("volumeAttributesClassName"):
        return
    at, name = "spec.volumeAttributesClassName", spec.volumeAttributesClassName
    yield from class_name(at, name) if name else [field.required(at, "an empty string is disallowed")]
    if not spec.persistentVolumeSource.HasField("csi"):
        yield field.required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _validate_change(new: PersistentVolume, old: PersistentVolume) -> Iterator[Cause]:
    source = copy_of(new.spec.persistentVolumeSource)
    before = old.spec.persistentVolumeSource
    if before.HasField("csi") and not before.csi.HasField("controllerExpandSecretRef"):
        # It may be given later.
        source.csi.ClearField("controllerExpandSecretRef")
    if source != before:
        problem = "spec.persistentvolumesource is immutable after creation"
        yield field.forbidden("spec.persistentvolumesource", f"{problem}\n{diff(before, source)}")
    yield from field.immutable("volumeMode", _mode(new.spec), _mode(old.spec))
    if old.spec.HasField("nodeAffinity"):
        yield from _affinity_change(new.spec, old.spec)
    if old.spec.HasField("volumeAttributesClassName") and not new.spec.HasField("volumeAttributesClassName"):
        problem = "update from non-nil value to nil is forbidden"
        yield field.forbidden("spec.volumeAttributesClassName", problem)


def _mode(spec: core.PersistentVolumeSpec) -> str | None:
    return spec.volumeMode if spec.HasField("volumeMode") else None


def _affinity_change(new: core.PersistentVolumeSpec, old: core.PersistentVolumeSpec) -> list[Cause]:
    """It stays, though a label that Kubernetes has renamed may be called by its new name."""
    renamed = copy_of(old.nodeAffinity)
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


def _validate_status(new: PersistentVolume, old: PersistentVolume) -> Iterator[Cause]:
    if not new.metadata.resourceVersion:
        yield field.required("resourceVersion")


def _warnings(volume: PersistentVolume) -> Iterator[str]:
    yield from claims.class_annotation_warnings(volume)
    if _OPTIONS_ANNOTATION in volume.metadata.annotations:
        text = 'deprecated since v1.31; use "mountOptions" attribute instead'
        yield f"metadata.annotations[{_OPTIONS_ANNOTATION}]: {text}"
    if volume.spec.persistentVolumeReclaimPolicy == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the"
            " recommended approach is to use dynamic provisioning."
        )
    for index, term in enumerate(volume.spec.nodeAffinity.required.nodeSelectorTerms):
        yield from pod_warnings.of_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    for name, (path, text) in _VOLUME_TYPES.items():
        if volume.spec.persistentVolumeSource.HasField(name):
            yield f"spec.{path}: {text}"


def _row(volume: PersistentVolume, now: float) -> Cells:
    spec, status = volume.spec, volume.status
    claim = f"{spec.claimRef.namespace}/{spec.claimRef.name}" if spec.HasField("claimRef") else ""
    storage_class = volume.metadata.annotations.get("volume.beta.kubernetes.io/storage-class", "")
    return [
        spec.capacity["storage"].string if "storage" in spec.capacity else "0",
        shown_access_modes(spec.accessModes),
        spec.persistentVolumeReclaimPolicy,
        "Terminating" if volume.metadata.HasField("deletionTimestamp") else status.phase,
        claim,
        storage_class or spec.storageClassName,
        shown_attributes_class(spec),
        status.reason,
        spec.volumeMode or UNSET,
    ]


RULES = KindRules(
    kind=kinds.PERSISTENT_VOLUME,
    strategy=VolumeStrategy(
        kinds.PERSISTENT_VOLUME, {"status": VolumeStatusStrategy(kinds.PERSISTENT_VOLUME, _validate_status)}
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Capacity", "persistentvolumespec-v1#capacity"),
        Column("Access Modes", "persistentvolumespec-v1#accessModes"),
        Column("Reclaim Policy", "persistentvolumespec-v1#persistentVolumeReclaimPolicy"),
        Column("Status", "persistentvolumestatus-v1#phase"),
        Column("Claim", "persistentvolumespec-v1#claimRef"),
        Column("StorageClass", "StorageClass of the pv"),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
        Column("Reason", "persistentvolumestatus-v1#reason"),
        AGE,
        wide("VolumeMode", "persistentvolumespec-v1#volumeMode"),
    ),
    delete_response=DeleteResponse.OBJECT,
)
