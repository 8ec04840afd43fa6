"""The strategy of ResourceClaims (kube-apiserver 1.36, registry/resource/resourceclaim)."""

from __future__ import annotations

from typing import Any

from apiserver.registry.ruled import Ruled, RuledStatus
from apiserver.registry.strategy import Environment
from apiserver.validation import device_claim_status, device_claims
from machinery.api import kinds
from machinery.api.pb import devices


class ResourceClaimStatusStrategy(RuledStatus):
    """PUT of `status`."""

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_for_update(new, old, env)
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


class ResourceClaimStrategy(Ruled):
    """The main resource."""

    def __init__(self) -> None:
        kind = kinds.RESOURCE_CLAIM
        super().__init__(kind, device_claims.claim, device_claims.claim_change, checks_updates=False)
        self.subresources = {"status": ResourceClaimStatusStrategy(kind, device_claim_status.update)}


STRATEGY = ResourceClaimStrategy()
