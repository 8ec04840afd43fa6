"""Gather the pools of devices that a node can reach, and whether they can be allocated from.

Pools and slices are tried in the order of their names; pools whose devices need binding conditions come
last, since simpler devices are preferred. Source: structured/internal (GatherPools) 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nominee.machinery.api.pb import core
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import (
    Amounts,
    DeviceView,
    Features,
    Node,
    PoolId,
    SliceView,
)


@dataclass(frozen=True, slots=True)
class Pool:
    """The newest generation of a pool, as one node sees it.

    `slices` are those that the node reaches; `elsewhere` the others, whose devices may use the same counters.
    """

    id: PoolId
    slices: tuple[SliceView, ...] = ()
    elsewhere: tuple[SliceView, ...] = ()
    counters: dict[str, Amounts] = field(default_factory=dict)
    is_incomplete: bool = False
    invalid: str = ""  # why: names used twice, counters that do not exist

    def devices(self) -> Iterable[DeviceView]:
        """Return the devices in the order in which they are tried."""
        for slice_ in self.slices:
            yield from slice_.devices


class SliceIndex:
    """All slices of the cluster, by pool, and by node for those that belong to one node."""

    def __init__(self, slices: Iterable[SliceView]) -> None:
        self.by_pool: dict[PoolId, list[SliceView]] = {}
        self._of_node: dict[str, list[SliceView]] = {}
        self._of_many: list[SliceView] = []
        for slice_ in sorted(slices, key=lambda s: s.name):
            self.by_pool.setdefault(slice_.pool_id, []).append(slice_)
            if slice_.target.node_name and slice_.shared is None:
                self._of_node.setdefault(slice_.target.node_name, []).append(slice_)
            else:
                self._of_many.append(slice_)
        self._pools: dict[str, tuple[core.Node, Features, list[Pool]]] = {}

    def reachable(self, node: Node, features: Features) -> list[SliceView]:
        """Return the slices whose devices the node may use, and all that hold shared counters."""
        found = list(self._of_node.get(node.name, ()))
        found += [s for s in self._of_many if s.shared is not None or s.reachable(node.name, node.labels)]
        if not features.partitionable:
            found = [s for s in found if s.shared is None and not s.per_device_set]
        return found

    def pools(self, node: Node, features: Features) -> list[Pool]:
        """Return `gather_pools`, kept for as long as the node and the slices do not change."""
        if node.source is None:
            return gather_pools(self, node, features)
        known = self._pools.get(node.name)
        if known is None or known[0] is not node.source or known[1] != features:
            known = node.source, features, gather_pools(self, node, features)
            self._pools[node.name] = known
        return known[2]


def gather_pools(index: SliceIndex, node: Node, features: Features) -> list[Pool]:
    """Return the pools that have something for the node, incomplete and invalid ones included."""
    newest: dict[PoolId, list[SliceView]] = {}
    for slice_ in index.reachable(node, features):
        found = newest.setdefault(slice_.pool_id, [])
        if found and slice_.generation > found[0].generation:
            found.clear()
        if not found or slice_.generation == found[0].generation:
            found.append(slice_)
    pools = [_pool(index, pool_id, slices, features) for pool_id, slices in newest.items()]
    known = [pool for pool in pools if pool is not None]
    return sorted(known, key=lambda p: (any(s.has_binding_conditions for s in p.slices), p.id))


def _pool(index: SliceIndex, id_: PoolId, slices: list[SliceView], features: Features) -> Pool | None:
    """Return the pool; None when a newer generation that has nothing for this node (yet) is published."""
    elsewhere: Sequence[SliceView] = ()
    generation, count = slices[0].generation, slices[0].count
    if len(slices) != count:
        if any(s.generation > generation for s in index.by_pool[id_]):
            return None
        all_ = [s for s in index.by_pool[id_] if s.generation == generation]
        if len(all_) != count:
            return Pool(id_, is_incomplete=True)
        names = {s.name for s in slices}
        elsewhere = [s for s in all_ if s.name not in names]
    slices.sort(key=lambda s: s.name)
    with_devices = [s for s in slices if s.shared is None]
    if twice := _first_twice(d.id.device for s in with_devices for d in s.devices):
        return Pool(id_, invalid=f"duplicate device name {twice}")
    if not features.partitionable:
        return Pool(id_, tuple(with_devices))
    if twice := _first_twice(name for s in slices for name in s.shared or ()):
        return Pool(id_, invalid=f"duplicate counter set name {twice}")
    counters = {name: amounts for s in slices if s.shared is not None for name, amounts in s.shared.items()}
    missing = _missing_counter(counters, (d for s in (*slices, *elsewhere) for d in s.devices))
    if missing:
        return Pool(id_, invalid=missing)
    return Pool(id_, tuple(with_devices), tuple(elsewhere), counters)


def _first_twice(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _missing_counter(counters: dict[str, Amounts], devices: Iterable[DeviceView]) -> str:
    for device in devices:
        for counter_set, amounts in device.consumes:
            if counter_set not in counters:
                return f"counter set {counter_set} not found"
            for name in amounts:
                if name not in counters[counter_set]:
                    return f"counter {name} not found in counter set {counter_set}"
    return ""
