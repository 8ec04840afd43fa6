"""Compute how much of a device's capacity a request takes (KEP-5075, consumable capacity).

A device's request policy gives a default, rounds up to a step or to the next valid value, and sets a maximum.
"""

from __future__ import annotations

from collections.abc import Mapping

from nominee.machinery.api.pb import devices
from nominee.machinery.resources.quantity import Format, Quantity
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import Amounts, DeviceView


def _parse(quantity: object) -> Quantity:
    return Quantity.parse(getattr(quantity, "string", "") or "0")


def consumed(asked: Amounts | None, device: DeviceView) -> Amounts:
    """Return the amount that the request takes of each of the device's capacities."""
    return {
        name: _consumed((asked or {}).get(name), value, device.message.capacity[name])
        for name, value in device.amounts.items()
    }


def _consumed(asked: Quantity | None, value: Quantity, capacity: devices.DeviceCapacity) -> Quantity:
    policy = capacity.requestPolicy if capacity.HasField("requestPolicy") else None
    if asked is None:
        return _parse(policy.default) if policy is not None and policy.HasField("default") else value
    if policy is None:
        return asked
    if policy.HasField("validRange") and policy.validRange.HasField("min"):
        return _rounded_up(asked, policy.validRange)
    for valid in map(_parse, policy.validValues):
        if asked <= valid:
            return valid
    return asked


def _rounded_up(asked: Quantity, valid: devices.CapacityRequestPolicyRange) -> Quantity:
    """Round up to `min`, or from there by the step."""
    low = _parse(valid.min)
    if asked < low:
        return low
    if not valid.HasField("step"):
        return asked
    step = _parse(valid.step).value()
    if step <= 0:
        return asked
    steps = -(-(asked.value() - low.value()) // step)
    return Quantity.of(low.value() + step * steps, Format.BINARY_SI)


def _violates(amount: Quantity, capacity: devices.DeviceCapacity) -> bool:
    if not capacity.HasField("requestPolicy"):
        return False
    policy = capacity.requestPolicy
    if policy.HasField("default") and amount == _parse(policy.default):
        return False
    if policy.HasField("validRange"):
        valid = policy.validRange
        if valid.HasField("max") and amount > _parse(valid.max):
            return True
        if valid.HasField("step"):
            step = _parse(valid.step).value()
            return step > 0 and (amount.value() - _parse(valid.min).value()) % step != 0
        return False
    return bool(policy.validValues) and all(amount != _parse(valid) for valid in policy.validValues)


def fits(asked: Amounts | None, device: DeviceView, *taken: Mapping[str, Quantity]) -> bool:
    """Return whether the device has free capacity for the request, and its policy allows it."""
    if asked and any(name not in device.amounts for name in asked):
        return False
    for name, amount in consumed(asked, device).items():
        if _violates(amount, device.message.capacity[name]):
            return False
        total = amount
        for amounts in taken:
            if name in amounts:
                total = total + amounts[name]
        if total > device.amounts[name]:
            return False
    return True


def add(to: Amounts, amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        to[name] = to[name] + amount if name in to else amount


def subtract(of: Amounts, amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        if name in of:
            of[name] = of[name] - amount
