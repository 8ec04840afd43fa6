"""CSINodes, CSIDrivers, CSIStorageCapacities, VolumeAttachments (kube-apiserver 1.36, storage/validation)."""

from __future__ import annotations

from apiserver.validation import device_names, field, names
from apiserver.validation.go_dump import dump
from apiserver.validation.selectors import label_selector
from machinery.api.errors import Cause
from machinery.api.pb import storage
from machinery.resources.quantity import Quantity

_NODE_ID_LENGTH_MAX = 192
_EXPIRATION_SECONDS_MIN, _EXPIRATION_SECONDS_MAX = 600, 2**32
_UPDATE_PERIOD_SECONDS_MIN = 10
_METADATA_BYTES_MAX = 256 * 1024
_ERROR_BYTES_MAX = 1024
_MODES = ("Ephemeral", "Persistent")
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_ONE_OF = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def node(obj: storage.CSINode) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, driver in enumerate(obj.spec.drivers):
        path = f"spec.drivers[{index}]"
        errors += device_names.driver(f"{path}.name", driver.name)
        if not driver.nodeID:
            errors.append(field.required(f"{path}.nodeID"))
        elif len(driver.nodeID.encode()) > _NODE_ID_LENGTH_MAX:
            problem = f"must be {_NODE_ID_LENGTH_MAX} characters or less"
            errors.append(field.invalid(f"{path}.nodeID", driver.nodeID, problem))
        if driver.allocatable.HasField("count"):
            errors += field.non_negative(f"{path}.allocatable.count", driver.allocatable.count)
        if driver.name in seen:
            errors.append(field.duplicate(f"{path}.name", driver.name))
        seen.add(driver.name)
        keys: set[str] = set()
        for number, key in enumerate(driver.topologyKeys):
            at = f"{path}.topologyKeys"
            if not key:
                errors.append(field.required(at, key))
            if key in keys:
                errors.append(field.duplicate(at, key))
            keys.add(key)
            errors += [field.invalid(f"{at}[{number}]", key, p) for p in names.qualified_name(key)]
    return errors


def node_change(new: storage.CSINode, old: storage.CSINode) -> list[Cause]:
    """What a driver said of a node stays, though drivers come and go."""
    before = {driver.name: driver for driver in old.spec.drivers}
    errors: list[Cause] = []
    for driver in new.spec.drivers:
        was = before.get(driver.name)
        if was is None:
            continue
        changed = storage.CSINodeDriver()
        changed.CopyFrom(driver)
        changed.ClearField("allocatable")
        if was.HasField("allocatable"):
            changed.allocatable.CopyFrom(was.allocatable)
        if changed != was:
            errors.append(field.invalid("CSINodeDriver", dump(driver), field.IMMUTABLE))
    return errors


def driver(obj: storage.CSIDriver) -> list[Cause]:
    spec = obj.spec
    errors = device_names.driver("name", obj.metadata.name) if obj.metadata.name else []
    for name, path in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):
        if not spec.HasField(name):
            errors.append(field.required(f"spec.{path}"))
    if spec.HasField("fsGroupPolicy") and spec.fsGroupPolicy not in _GROUP_POLICIES:
        errors.append(field.not_supported("spec.fsGroupPolicy", spec.fsGroupPolicy, _GROUP_POLICIES))
    audiences: set[str] = set()
    for index, request in enumerate(spec.tokenRequests):
        path = f"spec.tokenRequests[{index}]"
        if request.audience in audiences:
            errors.append(field.duplicate(f"{path}.audience", request.audience))
        audiences.add(request.audience)
        if request.HasField("expirationSeconds"):
            errors += _expiration(f"{path}.expirationSeconds", request.expirationSeconds)
    for mode in spec.volumeLifecycleModes:
        if mode not in _MODES:
            errors.append(field.not_supported("spec.volumeLifecycleModes", mode, _MODES))
    period = spec.nodeAllocatableUpdatePeriodSeconds
    if spec.HasField("nodeAllocatableUpdatePeriodSeconds") and period < _UPDATE_PERIOD_SECONDS_MIN:
        problem = f"must be greater than or equal to {_UPDATE_PERIOD_SECONDS_MIN} seconds"
        errors.append(field.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, problem))
    return errors


def _expiration(path: str, seconds: int) -> list[Cause]:
    if seconds < _EXPIRATION_SECONDS_MIN:
        return [field.invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _EXPIRATION_SECONDS_MAX:
        return [field.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def driver_change(new: storage.CSIDriver, old: storage.CSIDriver) -> list[Cause]:
    errors = field.immutable("spec.attachedRequired", new.spec.attachRequired, old.spec.attachRequired)
    modes = "spec.volumeLifecycleModes"
    return errors + field.immutable(
        modes, list(new.spec.volumeLifecycleModes), list(old.spec.volumeLifecycleModes)
    )


def capacity(obj: storage.CSIStorageCapacity) -> list[Cause]:
    errors = label_selector("nodeTopology", obj.nodeTopology) if obj.HasField("nodeTopology") else []
    errors += [
        field.invalid("storageClassName", obj.storageClassName, p)
        for p in names.dns_subdomain(obj.storageClassName)
    ]
    for name in ("capacity", "maximumVolumeSize"):
        if obj.HasField(name):
            text = getattr(obj, name).string
            if Quantity.parse(text or "0").sign < 0:
                problem = "must be greater than or equal to 0"
                errors.append(field.invalid(name, text, problem))
    return errors


def capacity_change(new: storage.CSIStorageCapacity, old: storage.CSIStorageCapacity) -> list[Cause]:
    errors: list[Cause] = []
    if new.nodeTopology != old.nodeTopology:
        errors.append(field.invalid("nodeTopology", dump(new.nodeTopology), field.IMMUTABLE))
    return errors + field.immutable("storageClassName", new.storageClassName, old.storageClassName)


def attachment(obj: storage.VolumeAttachment) -> list[Cause]:
    spec = obj.spec
    errors = device_names.driver("spec.attacher", spec.attacher)
    inline, named = spec.source.HasField("inlineVolumeSpec"), spec.source.HasField("persistentVolumeName")
    if inline == named:
        errors.append(
            field.forbidden("spec.source", _ONE_OF) if inline else field.required("spec.source", _ONE_OF)
        )
    elif named:
        at = "spec.source.persistentVolumeName"
        if not spec.source.persistentVolumeName:
            errors.append(field.required(at, "must specify non empty persistentVolumeName"))
        else:
            errors += device_names.subdomain(at, spec.source.persistentVolumeName)
    errors += [field.invalid("spec.nodeName", spec.nodeName, p) for p in names.dns_subdomain(spec.nodeName)]
    return errors + _attachment_status(obj.status)


def _attachment_status(status: storage.VolumeAttachmentStatus) -> list[Cause]:
    """validateVolumeAttachmentStatus."""
    errors: list[Cause] = []
    said = status.attachmentMetadata
    if sum(len(key.encode()) + len(said[key].encode()) for key in said) > _METADATA_BYTES_MAX:
        errors.append(field.too_long("status.attachmentMetadata", _METADATA_BYTES_MAX))
    for name in ("attachError", "detachError"):
        if not status.HasField(name):
            continue
        error = getattr(status, name)
        if len(error.message.encode()) > _ERROR_BYTES_MAX:
            errors.append(field.too_long(f"status.{name}.message", _ERROR_BYTES_MAX))
        if error.HasField("errorCode"):
            errors += field.non_negative(f"status.{name}.errorCode", error.errorCode)
    return errors


def attachment_status(new: storage.VolumeAttachment, old: storage.VolumeAttachment) -> list[Cause]:
    """Upstream looks at the whole object."""
    return attachment(new)


def attachment_change(new: storage.VolumeAttachment, old: storage.VolumeAttachment) -> list[Cause]:
    return [] if new.spec == old.spec else [field.invalid("spec", dump(new.spec), field.IMMUTABLE)]
