"""When pods must end since their devices have NoExecute taints. Pure.

Source: kube-controller-manager 1.36, device taint eviction (KEP-5055).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from nominee.machinery.api.pb import devices
from nominee.machinery.runtime.clock import from_time

NO_EXECUTE = "NoExecute"
Device = tuple[str, str, str]  # driver, pool, name
Taints = Mapping[Device, Sequence[devices.DeviceTaint]]


def executing(slices: Iterable[devices.ResourceSlice]) -> Taints:
    """Return the NoExecute taints by device, without slices of a pool's older generations."""
    slices = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for each in slices:
        pool = each.spec.driver, each.spec.pool.name
        newest[pool] = max(newest.get(pool, each.spec.pool.generation), each.spec.pool.generation)
    found: dict[Device, list[devices.DeviceTaint]] = {}
    for each in slices:
        driver, name = each.spec.driver, each.spec.pool.name
        if each.spec.pool.generation != newest[driver, name]:
            continue
        for device in each.spec.devices:
            taints = [taint for taint in device.taints if taint.effect == NO_EXECUTE]
            if taints:
                found.setdefault((driver, name, device.name), taints)
    return found


def ends_at(
    claim: devices.ResourceClaim, taints: Taints, first_seen: Callable[[Device, devices.DeviceTaint], float]
) -> float | None:
    """Return when pods that use the claim must end, in seconds since the epoch; None is never.

    The earliest time of any taint of any device counts. `first_seen` returns the time of a taint without one.
    """
    times = []
    for result in claim.status.allocation.devices.results:
        device = result.driver, result.pool, result.device
        for taint in taints.get(device, ()):
            seconds = _tolerated_seconds(result.tolerations, taint)
            if seconds is not None:
                has_time = taint.HasField("timeAdded")
                added = from_time(taint.timeAdded) if has_time else first_seen(device, taint)
                times.append(added + seconds)
    return min(times, default=None)


def executes(slice_: devices.ResourceSlice) -> bool:
    """Report whether any device of a slice has a NoExecute taint."""
    return any(taint.effect == NO_EXECUTE for device in slice_.spec.devices for taint in device.taints)


def _tolerated_seconds(
    tolerations: Iterable[devices.DeviceToleration], taint: devices.DeviceTaint
) -> float | None:
    """Return how long the taint is tolerated: 0 not at all, None for ever; the shortest time counts.

    A toleration without effect lets a pod be scheduled, and does not keep it (claimEvictionTime).
    """
    shortest: float | None = None
    for toleration in tolerations:
        if toleration.effect != NO_EXECUTE or not _matches(toleration, taint):
            continue
        if not toleration.HasField("tolerationSeconds"):
            return None
        seconds = max(float(toleration.tolerationSeconds), 0.0)
        shortest = seconds if shortest is None else min(shortest, seconds)
    return 0.0 if shortest is None else shortest


def _matches(toleration: devices.DeviceToleration, taint: devices.DeviceTaint) -> bool:
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
