"""Limits of the whole cluster: cores and memory, from both sides. Source: cluster-autoscaler 1.36, quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from autoscaler.options import GIB, Options
from autoscaler.planning import taints
from machinery.api.pb import core
from machinery.resources.quantity import value

CPU, MEMORY = "cpu", "memory"


def size(node: core.Node) -> dict[str, int]:
    """Whole cores, and bytes."""
    capacity = node.status.capacity
    return {name: value(capacity[name]) if name in capacity else 0 for name in (CPU, MEMORY)}


def total(nodes: Iterable[core.Node], now: float) -> dict[str, int]:
    """Of all nodes that are not being deleted."""
    found = {CPU: 0, MEMORY: 0}
    for node in nodes:
        if not taints.is_being_deleted(node, now):
            for name, amount in size(node).items():
                found[name] += amount
    return found


class MaxQuota:
    """How many nodes may still come. `refused` counts by resource how often one more was too much."""

    def __init__(self, options: Options, nodes: Iterable[core.Node], now: float) -> None:
        self.refused: Counter[str] = Counter()
        limits = {CPU: options.cores_total.max, MEMORY: options.memory_total.max * GIB}
        used = total(nodes, now)
        self._left = {name: limit - used[name] for name, limit in limits.items()}

    def exceeded(self, node: core.Node) -> list[str]:
        """Return the resources of which there is not enough for one more such node."""
        found = [name for name, amount in sorted(size(node).items()) if amount > max(self._left[name], 0)]
        self.refused.update(found)
        return found

    def allowed(self, node: core.Node, count: int) -> int:
        """How many of so many such nodes may come."""
        for name, amount in size(node).items():
            if amount:
                count = min(count, max(self._left[name], 0) // amount)
        return count

    def take(self, node: core.Node, count: int) -> int:
        """Lets so many such nodes come, as far as may be; how many."""
        count = self.allowed(node, count)
        for name, amount in size(node).items():
            self._left[name] -= amount * count
        return count


class MinQuota:
    """What may still go. `refused` counts by resource how often a node had to stay."""

    def __init__(self, options: Options, nodes: Iterable[core.Node], now: float) -> None:
        self.refused: Counter[str] = Counter()
        limits = {CPU: options.cores_total.min, MEMORY: options.memory_total.min * GIB}
        used = total(nodes, now)
        self._left = {name: used[name] - limit for name, limit in limits.items()}

    def take(self, node: core.Node) -> bool:
        """Return whether the node may go; if so, it counts as gone from now on."""
        amounts = size(node)
        refused = [name for name, amount in amounts.items() if amount > self._left[name]]
        self.refused.update(refused)
        if refused:
            return False
        for name, amount in amounts.items():
            self._left[name] -= amount
        return True
