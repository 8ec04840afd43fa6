"""Count the shared counters of a pool: partitions of one GPU take from the same ones (KEP-4815)."""

from __future__ import annotations

from nominee.machinery.resources.quantity import Quantity
from nominee.scheduler.plugins.dynamic_resources.device_allocation.capacity import add, subtract
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import (
    AllocatedState,
    Amounts,
    DeviceView,
    PoolId,
)
from nominee.scheduler.plugins.dynamic_resources.device_allocation.pools import Pool

_ZERO = Quantity()
CounterSets = dict[str, Amounts]


class Counters:
    """The rest of each pool's counters beside allocated devices, and the search's part of it.

    `available` lives as long as the allocated devices stay the same; it is shared by all nodes' searches.
    """

    def __init__(self, state: AllocatedState, available: dict[PoolId, CounterSets]) -> None:
        self._state = state
        self._available = available
        self._taken: dict[PoolId, CounterSets] = {}

    def take(self, pool: Pool, device: DeviceView) -> bool:
        """Take the device's counters; return false if there is not enough."""
        available = self._available_in(pool)
        taken = self._taken.setdefault(pool.id, {})
        for counter_set, amounts in device.consumes:
            add(taken.setdefault(counter_set, {}), amounts)
        for counter_set, amounts in device.consumes:
            left, used = available.get(counter_set, {}), taken[counter_set]
            if any(left.get(name, _ZERO) < used[name] for name in amounts):
                self.give_back(pool, device)
                return False
        return True

    def give_back(self, pool: Pool, device: DeviceView) -> None:
        taken = self._taken[pool.id]
        for counter_set, amounts in device.consumes:
            subtract(taken[counter_set], amounts)

    def _available_in(self, pool: Pool) -> CounterSets:
        """Return the rest of a pool; nothing of it when a counter is negative (the pool has shrunk)."""
        found = self._available.get(pool.id)
        if found is None:
            found = {name: dict(amounts) for name, amounts in pool.counters.items()}
            for slice_ in (*pool.slices, *pool.elsewhere):
                for device in slice_.devices:
                    if device.id in self._state.devices or device.id in self._state.capacity:
                        for counter_set, amounts in device.consumes:
                            subtract(found.get(counter_set, {}), amounts)
            if any(amount < _ZERO for amounts in found.values() for amount in amounts.values()):
                found = {}
            self._available[pool.id] = found
        return found
