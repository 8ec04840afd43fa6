"""Wait for devices that must be prepared before a pod is bound: binding conditions (KEP-5007).

A claim's allocation names conditions that the driver sets on the device's status; a failure condition, or
too long a wait, sends the pod back, and the claim is deallocated so that other devices are tried.
"""

from __future__ import annotations

from nominee.machinery.api.objects import condition_is, get_condition
from nominee.machinery.api.pb import devices
from nominee.machinery.runtime.clock import from_time
from nominee.scheduler.plugins.dynamic_resources.pod_claims import BindingFailedError, Claim, is_allocated


def has_conditions(claim: Claim) -> bool:
    """Return whether anything must be waited for."""
    return any(result.bindingConditions for result in claim.status.allocation.devices.results)


def is_ready(claim: Claim) -> bool:
    """Return whether all conditions are true.

    Raises:
        BindingFailedError: a failure condition is true.
    """
    if not is_allocated(claim):
        return False
    for result in claim.status.allocation.devices.results:
        if not result.bindingConditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        for name in result.bindingFailureConditions:
            failed = get_condition(status.conditions, name)
            if failed is not None and failed.status == "True":
                text = f'reason={failed.reason}, message="{failed.message}"'
                raise BindingFailedError(f"claim {claim.metadata.name} binding failed: {text}")
        if not all(condition_is(status.conditions, name) for name in result.bindingConditions):
            return False
    return True


def is_late(claim: Claim, now: float, timeout_seconds: float) -> bool:
    """Return whether the devices should have been ready by now; seconds since the epoch."""
    if not is_allocated(claim) or not claim.status.allocation.HasField("allocationTimestamp"):
        return False
    deadline = from_time(claim.status.allocation.allocationTimestamp) + timeout_seconds
    return has_conditions(claim) and deadline < now


def _status_of(
    claim: Claim, result: devices.DeviceRequestAllocationResult
) -> devices.AllocatedDeviceStatus | None:
    """Return the first status of the device. Whose share it is does not matter.

    Source: kube-scheduler 1.36, getAllocatedDeviceStatus.
    """
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device):
            return status
    return None
