"""How much of a node's devices is in use. Source: cluster-autoscaler 1.36, dynamic resources utilization.

A pool of whole devices: the share that is allocated. Of devices that are parts of others (they consume
counters): the most used counter of each counter set, over all sets. Of both: by how many there are of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autoscaler.planning.dynamic_resources import Claim, Slice
from autoscaler.planning.utilization import Utilization
from machinery.api.pb import devices
from machinery.resources.quantity import value

Counters = dict[tuple[str, str], int]  # by counter set and counter, whole units


def device_utilization(slices: Iterable[Slice], claims: Iterable[Claim]) -> Utilization | None:
    """Return the share of the pool that is used most.

    None when that is not known: a claim has no devices, or a pool is not complete.
    """
    used: dict[tuple[str, str], set[str]] = {}
    for claim in claims:
        if not claim.status.HasField("allocation"):
            return None
        for result in claim.status.allocation.devices.results:
            if not result.adminAccess:
                used.setdefault((result.driver, result.pool), set()).add(result.device)
    pools: dict[tuple[str, str], list[Slice]] = {}
    for each in slices:
        pools.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    share, resource = 0.0, ""
    for key, found in sorted(pools.items()):
        newest = max(each.spec.pool.generation for each in found)
        current = [each for each in found if each.spec.pool.generation == newest]
        if len(current) != current[0].spec.pool.resourceSliceCount:
            return None
        of_pool = _pool_share(current, used.get(key, set()))
        if of_pool > share or not resource:
            share, resource = of_pool, "/".join(key)
    return Utilization(share=share, resource=resource, devices=share)


def _pool_share(slices: Sequence[Slice], used: set[str]) -> float:
    found = [device for each in slices for device in each.spec.devices]
    whole = [device for device in found if not device.consumesCounters]
    parts = [device for device in found if device.consumesCounters]
    whole_used = sum(device.name in used for device in whole)
    parts_used = [device for device in parts if device.name in used]
    of_whole = whole_used / len(whole) if whole else 0.0
    if not parts_used:
        return of_whole
    sets = len({row.counterSet for device in parts for row in device.consumesCounters})
    of_parts = _counters_share(slices, parts_used, sets)
    if not whole_used:
        return of_parts
    return (of_parts * sets + of_whole * len(whole)) / (sets + len(whole))


def _counters_share(slices: Sequence[Slice], used: Iterable[devices.Device], sets: int) -> float:
    """The most used counter of each set, on average."""
    there: Counters = {}
    for each in slices:
        for shared in each.spec.sharedCounters:
            _add(there, shared)
    taken: Counters = {}
    for device in used:
        for row in device.consumesCounters:
            _add(taken, row)
    highest: dict[str, float] = {}
    for key, amount in there.items():
        if amount:
            highest[key[0]] = max(highest.get(key[0], 0.0), taken.get(key, 0) / amount)
    return sum(highest.values()) / sets


def _add(counters: Counters, row: devices.CounterSet | devices.DeviceCounterConsumption) -> None:
    of = row.name if isinstance(row, devices.CounterSet) else row.counterSet
    for name, counter in row.counters.items():
        counters[of, name] = counters.get((of, name), 0) + value(counter.value)
