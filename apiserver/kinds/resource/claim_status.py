"""A ResourceClaim's status: allocation, reservations, devices (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nominee.apiserver.kinds.resource import device_terms
from nominee.apiserver.kinds.resource.claim_specs import (
    Requests,
    request_names,
    request_reference,
    request_references,
)
from nominee.apiserver.validation import field, go_dump, lists
from nominee.apiserver.validation.objects import conditions
from nominee.apiserver.validation.scheduling_terms import node_selector
from nominee.apiserver.validation.values import device_names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import devices

_RESERVATIONS_MAX = 256
_RESULTS_MAX = 32
_DATA_BYTES_MAX = 10 * 1024
_CONDITIONS_MAX = 8
_NETWORK_BYTES_MAX = {"interfaceName": 256, "hardwareAddress": 128}
_SOURCES = ("FromClaim", "FromClass")


def validate(new: devices.ResourceClaim, old: devices.ResourceClaim) -> list[Cause]:
    """Check a changed status (ValidateResourceClaimStatusUpdate)."""
    status, before = new.status, old.status
    errors = lists.distinct(
        "status.reservedFor", status.reservedFor, _RESERVATIONS_MAX, _consumer, key=lambda user: user.uid
    )
    given = {_device_key(result) for result in status.allocation.devices.results}
    errors += lists.distinct(
        "status.devices", status.devices, -1, partial(_device_status, given), key=_device_key
    )
    if status.reservedFor and not status.HasField("allocation"):
        problem = "may not be specified when `allocated` is not set"
        errors.append(field.forbidden("status.reservedFor", problem))
    elif status.reservedFor and new.metadata.HasField("deletionTimestamp"):
        known = {user.SerializeToString(deterministic=True) for user in before.reservedFor}
        if any(user.SerializeToString(deterministic=True) not in known for user in status.reservedFor):
            problem = (
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            )
            errors.append(field.forbidden("status.reservedFor", problem))
    if before.HasField("allocation") and status.HasField("allocation"):
        if status.allocation != before.allocation:
            shown = go_dump.dump(status.allocation)
            errors.append(field.invalid("status.allocation", shown, field.IMMUTABLE))
    elif status.HasField("allocation"):
        errors += _allocation("status.allocation", status.allocation, request_names(new.spec.devices))
    return errors


def _consumer(path: str, user: devices.ResourceClaimConsumerReference) -> list[Cause]:
    return [
        field.required(f"{path}.{name}") for name in ("resource", "name", "uid") if not getattr(user, name)
    ]


def _device_key(device: devices.AllocatedDeviceStatus | devices.DeviceRequestAllocationResult) -> str:
    share = f"/{device.shareID}" if device.shareID else ""
    return f"{device.driver}/{device.pool}/{device.device}{share}"


def _device_status(given: set[str], path: str, device: devices.AllocatedDeviceStatus) -> Iterator[Cause]:
    yield from device_names.driver(f"{path}.driver", device.driver)
    yield from device_names.pool(f"{path}.pool", device.pool)
    yield from device_names.label(f"{path}.device", device.device)
    key = _device_key(device)
    if key not in given:
        yield field.invalid(path, key, "must be an allocated device in the claim")
    if len(device.conditions) > _CONDITIONS_MAX:
        yield field.too_many(f"{path}.conditions", len(device.conditions), _CONDITIONS_MAX)
    yield from conditions.conditions(f"{path}.conditions", device.conditions)
    if device.HasField("data") and device.data.raw:
        yield from device_terms.raw(f"{path}.data", device.data.raw, _DATA_BYTES_MAX)
    for name, bytes_max in _NETWORK_BYTES_MAX.items():
        if len(getattr(device.networkData, name).encode()) > bytes_max:
            yield field.too_long(f"{path}.networkData.{name}", bytes_max)


def _allocation(path: str, allocation: devices.AllocationResult, known: Requests) -> list[Cause]:
    errors = lists.each(
        f"{path}.devices.results", allocation.devices.results, _RESULTS_MAX, partial(_result, known)
    )
    errors += lists.each(
        f"{path}.devices.config",
        allocation.devices.config,
        2 * device_terms.CONFIG_MAX,
        partial(_config, known),
    )
    if allocation.HasField("nodeSelector"):
        errors += node_selector(f"{path}.nodeSelector", allocation.nodeSelector)
    return errors


def _result(known: Requests, path: str, result: devices.DeviceRequestAllocationResult) -> Iterator[Cause]:
    yield from request_reference(known, f"{path}.request", result.request)
    yield from device_names.driver(f"{path}.driver", result.driver)
    yield from device_names.pool(f"{path}.pool", result.pool)
    yield from device_names.label(f"{path}.device", result.device)
    yield from device_terms.binding_conditions(
        path, result.bindingConditions, result.bindingFailureConditions
    )
    for index, toleration in enumerate(result.tolerations):
        yield from device_terms.toleration(f"{path}.tolerations[{index}]", toleration)


def _config(known: Requests, path: str, config: devices.DeviceAllocationConfiguration) -> Iterator[Cause]:
    yield from field.choice(f"{path}.source", config.source, _SOURCES)
    yield from request_references(known, f"{path}.requests", list(config.requests))
    yield from device_terms.configuration(path, config.deviceConfiguration)
