"""ResourceSlices: the time of a device's taint."""

from __future__ import annotations

from nominee.apiserver.kinds.resource.resource_slices import RULES
from nominee.apiserver.kinds.strategy import Environment
from nominee.machinery.api.pb import devices
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import from_time, to_time


def _slice(*times: float) -> devices.ResourceSlice:
    """Return a slice with one device, which has a taint of each time; 0: without one."""
    made = devices.ResourceSlice()
    device = made.spec.devices.add(name="gpu-0")
    for number, time in enumerate(times):
        taint = device.taints.add(key=f"taint-{number}", effect="NoExecute")
        if time:
            taint.timeAdded.CopyFrom(to_time(time))
    return made


def _times(found: devices.ResourceSlice) -> list[float]:
    return [from_time(taint.timeAdded) for device in found.spec.devices for taint in device.taints]


def test_a_taint_without_a_time_has_that_of_its_write() -> None:
    new = _slice(0, 50)
    RULES.strategy.prepare_for_create(new, Environment(Gates("apiserver"), to_time(100.0)))
    assert _times(new) == [100, 50]
    changed = _slice(100, 50, 0)
    RULES.strategy.prepare_for_update(changed, new, Environment(Gates("apiserver"), to_time(200.0)))
    assert _times(changed) == [100, 50, 200]
    assert changed.metadata.generation == 2
