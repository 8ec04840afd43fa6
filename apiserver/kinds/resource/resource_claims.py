"""ResourceClaims (kube-apiserver 1.36, registry/resource/resourceclaim and pkg/apis/resource/validation)."""

from __future__ import annotations

from nominee.apiserver.kinds.resource import claim_status
from nominee.apiserver.kinds.resource.claim_specs import claim_spec
from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, keep_metadata
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, go_dump
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import devices


class ResourceClaimStatusStrategy(StatusStrategy[devices.ResourceClaim]):
    """PUT of `status`; labels, annotations, finalizers and owners stay (resourceclaimStatusStrategy)."""

    def prepare_for_update(
        self, new: devices.ResourceClaim, old: devices.ResourceClaim, env: Environment
    ) -> None:
        super().prepare_for_update(new, old, env)
        keep_metadata(new, old)
        drop_deallocated(new.status, old.status)


def drop_deallocated(new: devices.ResourceClaimStatus, old: devices.ResourceClaimStatus) -> None:
    """Remove the status of devices that were allocated in `old` and are not in `new`, in place."""
    gone = {_device(result) for result in old.allocation.devices.results}
    gone -= {_device(result) for result in new.allocation.devices.results}
    kept = [status for status in new.devices if _device(status) not in gone]
    if len(kept) < len(new.devices):
        del new.devices[:]
        new.devices.extend(kept)


def _device(
    found: devices.DeviceRequestAllocationResult | devices.AllocatedDeviceStatus,
) -> tuple[str, str, str]:
    return found.driver, found.pool, found.device


def _validate(obj: devices.ResourceClaim) -> list[Cause]:
    return claim_spec("spec", obj.spec)


def _validate_change(new: devices.ResourceClaim, old: devices.ResourceClaim) -> list[Cause]:
    return [] if new.spec == old.spec else [field.invalid("spec", go_dump.dump(new.spec), field.IMMUTABLE)]


def _row(obj: devices.ResourceClaim, now: float) -> Cells:
    deleted = obj.metadata.HasField("deletionTimestamp")
    states = ["deleted"] if deleted else []
    if obj.status.HasField("allocation"):
        states.append("allocated")
        if obj.status.reservedFor:
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return [",".join(states)]


RULES = KindRules(
    kind=kinds.RESOURCE_CLAIM,
    strategy=SimpleStrategy(
        kinds.RESOURCE_CLAIM,
        _validate,
        _validate_change,
        updates=UpdateCheck.NOTHING,
        subresources={
            "status": ResourceClaimStatusStrategy(
                kinds.RESOURCE_CLAIM, claim_status.validate, reset_metadata=True
            )
        },
    ),
    columns=Columns(
        _row,
        NAME,
        Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
        AGE,
    ),
    delete_response=DeleteResponse.OBJECT,
)
