"""CSIDrivers (kube-apiserver 1.36, pkg/apis/storage/validation)."""

from __future__ import annotations

from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.cells import NONE, UNSET
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.apiserver.validation.values import device_names
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import storage

_EXPIRATION_SECONDS_MIN, _EXPIRATION_SECONDS_MAX = 600, 2**32
_UPDATE_PERIOD_SECONDS_MIN = 10
_MODES = ("Ephemeral", "Persistent")
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")


def _validate(obj: storage.CSIDriver) -> list[Cause]:
    spec = obj.spec
    errors = [*(device_names.driver("name", obj.metadata.name) if obj.metadata.name else [])]
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
        errors += field.unique(f"{path}.audience", request.audience, audiences)
        if request.HasField("expirationSeconds"):
            errors += _expiration(f"{path}.expirationSeconds", request.expirationSeconds)
    for mode in spec.volumeLifecycleModes:
        errors += field.one_of("spec.volumeLifecycleModes", mode, _MODES)
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


def _validate_change(new: storage.CSIDriver, old: storage.CSIDriver) -> list[Cause]:
    errors = field.immutable("spec.attachedRequired", new.spec.attachRequired, old.spec.attachRequired)
    modes = "spec.volumeLifecycleModes"
    return errors + field.immutable(
        modes, list(new.spec.volumeLifecycleModes), list(old.spec.volumeLifecycleModes)
    )


def _row(obj: storage.CSIDriver, now: float) -> Cells:
    spec = obj.spec
    audiences = ",".join(each.audience for each in spec.tokenRequests) if spec.tokenRequests else UNSET
    return [
        spec.attachRequired if spec.HasField("attachRequired") else True,
        spec.podInfoOnMount,
        spec.storageCapacity,
        audiences,
        spec.requiresRepublish,
        ",".join(spec.volumeLifecycleModes) or NONE,
    ]


RULES = KindRules(
    kind=kinds.CSI_DRIVER,
    strategy=SimpleStrategy(kinds.CSI_DRIVER, _validate, _validate_change, counts_generation=True),
    columns=Columns(
        _row,
        NAME,
        Column("AttachRequired", "csidriverspec-storage-v1#attachRequired", "boolean"),
        Column("PodInfoOnMount", "csidriverspec-storage-v1#podInfoOnMount", "boolean"),
        Column("StorageCapacity", "csidriverspec-storage-v1#storageCapacity", "boolean"),
        Column("TokenRequests", "csidriverspec-storage-v1#tokenRequests"),
        Column("RequiresRepublish", "csidriverspec-storage-v1#requiresRepublish", "boolean"),
        Column("Modes", "csidriverspec-storage-v1#volumeLifecycleModes"),
        AGE,
    ),
    delete_response=DeleteResponse.OBJECT,
    needs_resource_version=True,
)
