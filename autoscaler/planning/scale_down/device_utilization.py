"""Utilization of a node's devices. Pure. Source: cluster-autoscaler 1.36, dynamicresources utilization.

For a pool of whole devices it is the share that is allocated. For devices that are partitions of others (they
consume counters) it is the most used counter of each counter set, averaged over the sets. A pool with both is
weighted by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nominee.autoscaler.planning.scale_down.utilization import Utilization
from nominee.autoscaler.planning.snapshot.dynamic_resources import Claim, Slice
from nominee.machinery.api.pb import devices
from nominee.machinery.resources.quantity import value

_Counters = dict[tuple[str, str], int]  # by counter set and counter, in whole units


def device_utilization(slices: Iterable[Slice], claims: Iterable[Claim]) -> Utilization | None:
    """Return the utilization of the node's most used pool.

    None if it cannot be calculated: a claim is not allocated, or a pool is not complete.
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
    for key, of_pool in sorted(pools.items()):
        newest = max(each.spec.pool.generation for each in of_pool)
        current = [each for each in of_pool if each.spec.pool.generation == newest]
        if len(current) != current[0].spec.pool.resourceSliceCount:
            return None
        pool_share = _pool_share(current, used.get(key, set()))
        if pool_share > share or not resource:
            share, resource = pool_share, "/".join(key)
    return Utilization(share=share, resource=resource, devices=share)


def _pool_share(slices: Sequence[Slice], used: set[str]) -> float:
    """Return the allocated share of a pool; `used` are the names of the allocated devices."""
    pool_devices = [device for each in slices for device in each.spec.devices]
    whole = [device for device in pool_devices if not device.consumesCounters]
    partitions = [device for device in pool_devices if device.consumesCounters]
    whole_used = sum(device.name in used for device in whole)
    partitions_used = [device for device in partitions if device.name in used]
    whole_share = whole_used / len(whole) if whole else 0.0
    if not partitions_used:
        return whole_share
    sets = len({row.counterSet for device in partitions for row in device.consumesCounters})
    partitions_share = _counters_share(slices, partitions_used, sets)
    if not whole_used:
        return partitions_share
    return (partitions_share * sets + whole_share * len(whole)) / (sets + len(whole))


def _counters_share(slices: Sequence[Slice], used: Iterable[devices.Device], sets: int) -> float:
    """Return the most used counter of each set, averaged over `sets` sets."""
    available: _Counters = {}
    for each in slices:
        for shared in each.spec.sharedCounters:
            _add(available, shared.name, shared)
    consumed: _Counters = {}
    for device in used:
        for row in device.consumesCounters:
            _add(consumed, row.counterSet, row)
    highest: dict[str, float] = {}
    for key, amount in available.items():
        if amount:
            highest[key[0]] = max(highest.get(key[0], 0.0), consumed.get(key, 0) / amount)
    return sum(highest.values()) / sets


def _add(counters: _Counters, of: str, row: devices.CounterSet | devices.DeviceCounterConsumption) -> None:
    for name, counter in row.counters.items():
        counters[of, name] = counters.get((of, name), 0) + value(counter.value)
