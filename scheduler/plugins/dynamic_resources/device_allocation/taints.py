"""Match taints of devices with tolerations (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api.pb import devices

_PREVENTING = frozenset({"NoSchedule", "NoExecute"})


def tolerates(toleration: devices.DeviceToleration, taint: devices.DeviceTaint) -> bool:
    """Return whether one toleration covers one taint; an empty key or effect covers all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def prevents(device: devices.Device, tolerations: Iterable[devices.DeviceToleration]) -> bool:
    """Return whether a taint keeps the device from being allocated; other effects are informational."""
    tolerations = list(tolerations)
    return any(
        taint.effect in _PREVENTING and not any(tolerates(t, taint) for t in tolerations)
        for taint in device.taints
    )
