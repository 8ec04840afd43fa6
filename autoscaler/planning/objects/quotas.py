"""Limits of the cluster's cores and memory. Pure. Source: cluster-autoscaler 1.36, resourcequotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from nominee.autoscaler.options import GIB, Options
from nominee.autoscaler.planning.objects import taints
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import value

CPU, MEMORY = "cpu", "memory"


def node_resources(node: core.Node) -> dict[str, int]:
    """Return the node's capacity: whole cores, and bytes of memory."""
    capacity = node.status.capacity
    return {name: value(capacity[name]) if name in capacity else 0 for name in (CPU, MEMORY)}


def total_resources(nodes: Iterable[core.Node], now: float) -> dict[str, int]:
    """Return the capacity of all nodes that are not being deleted."""
    total = {CPU: 0, MEMORY: 0}
    for node in nodes:
        if not taints.is_being_deleted(node, now):
            for name, amount in node_resources(node).items():
                total[name] += amount
    return total


class MaxQuota:
    """Resources that the upper limits leave for new nodes. `refusals` counts refused nodes by resource."""

    def __init__(self, options: Options, nodes: Iterable[core.Node], now: float) -> None:
        self.refusals: Counter[str] = Counter()
        limits = {CPU: options.cores_total.max, MEMORY: options.memory_total.max * GIB}
        used = total_resources(nodes, now)
        self._left = {name: limit - used[name] for name, limit in limits.items()}

    def shortages(self, node: core.Node) -> list[str]:
        """Return the resources of which too little is left for one more such node."""
        amounts = sorted(node_resources(node).items())
        exceeded = [name for name, amount in amounts if amount > max(self._left[name], 0)]
        self.refusals.update(exceeded)
        return exceeded

    def count_max(self, node: core.Node, count: int) -> int:
        """Return how many of `count` such nodes the limits allow."""
        for name, amount in node_resources(node).items():
            if amount:
                count = min(count, max(self._left[name], 0) // amount)
        return count

    def take(self, node: core.Node, count: int) -> int:
        """Subtract up to `count` such nodes, as many as the limits allow; return how many."""
        count = self.count_max(node, count)
        for name, amount in node_resources(node).items():
            self._left[name] -= amount * count
        return count


class MinQuota:
    """Resources that the lower limits leave for deletion. `refusals` counts refused nodes by resource."""

    def __init__(self, options: Options, nodes: Iterable[core.Node], now: float) -> None:
        self.refusals: Counter[str] = Counter()
        limits = {CPU: options.cores_total.min, MEMORY: options.memory_total.min * GIB}
        used = total_resources(nodes, now)
        self._left = {name: used[name] - limit for name, limit in limits.items()}

    def take(self, node: core.Node) -> bool:
        """Subtract a node, if the limits allow its deletion; report whether they do."""
        amounts = node_resources(node)
        refused = [name for name, amount in amounts.items() if amount > self._left[name]]
        self.refusals.update(refused)
        if refused:
            return False
        for name, amount in amounts.items():
            self._left[name] -= amount
        return True
