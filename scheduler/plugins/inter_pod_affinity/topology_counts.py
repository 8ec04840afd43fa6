"""Sum an amount by topology domain: a domain is a label of nodes with one of its values.

Computed for all nodes at once; then single domains can be corrected on a copy, in a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.cluster.columns import Column
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import Rows
from nominee.scheduler.plugins.inter_pod_affinity.node_counts import NodeCounts

Counts = NDArray[np.int64]


@dataclass(slots=True)
class _Topology:
    """Of one label: its column, and the amount by the column's ids (nodes without the label have none)."""

    column: Column
    by_id: Counts = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    terms: int = 0  # contributions; `by_id` belongs to the first one as long as there is no other
    is_touched: bool = False  # something was counted in some domain, even if the sum is 0

    def add(self, weight: int, sums: Counts) -> None:
        """Add the sums of one term."""
        weighted = sums if weight == 1 else sums * weight
        self.by_id = weighted if not self.terms else self.by_id + weighted
        self.terms += 1
        self.is_touched = self.is_touched or bool(sums.any())


class TopologyCounts:
    """Amounts by (label, value). Valid until the snapshot that it was made from changes."""

    __slots__ = ("_changes", "_topologies", "domains")

    def __init__(
        self, snapshot: Snapshot | None = None, contributions: Iterable[tuple[str, int, NodeCounts]] = ()
    ) -> None:
        """Take `contributions`: label, weight, and a number for each node (none negative)."""
        self._changes: dict[tuple[str, str], int] = {}
        self._topologies: dict[str, _Topology] = {}
        self.domains = 0  # domains whose amount is not zero
        for key, weight, by_node in contributions:
            if snapshot is None:
                continue
            topology = self._topologies.get(key)
            if topology is None:
                topology = self._topologies[key] = _Topology(snapshot.label_column(key))
            topology.add(weight, by_node.by_domain(snapshot, key))
        for topology in self._topologies.values():
            self.domains += int(np.count_nonzero(topology.by_id))

    def clone(self) -> TopologyCounts:
        """Return a copy to be corrected."""
        other = TopologyCounts()
        other._changes = self._changes.copy()
        other._topologies = self._topologies
        other.domains = self.domains
        return other

    @property
    def touched(self) -> bool:
        """Return whether anything was counted in any domain, even if the sum is 0."""
        return any(topology.is_touched for topology in self._topologies.values())

    @property
    def keys(self) -> Iterable[str]:
        """Return the labels."""
        known = self._topologies.keys()
        return known | {key for key, _ in self._changes} if self._changes else known

    def get(self, key: str, value: str) -> int:
        """Return the amount of one domain."""
        found = self._changes.get((key, value), 0) if self._changes else 0
        topology = self._topologies.get(key)
        if topology is not None:
            id_ = topology.column.id_of(value)
            if id_ >= 0:
                found += int(topology.by_id[id_])
        return found

    def add(self, key: str, value: str | None, change: int) -> None:
        """Correct one domain; None: the node lacks the label, so there is no domain."""
        if value is None:
            return
        before = self.get(key, value)
        self._changes[key, value] = self._changes.get((key, value), 0) + change
        self.domains += (before + change != 0) - (before != 0)

    def by_row(self, snapshot: Snapshot, key: str, rows: Rows) -> Counts:
        """Return the amount of each row's domain; 0 for rows without the label."""
        topology = self._topologies.get(key)
        column = snapshot.label_column(key) if topology is None else topology.column
        by_id = np.zeros(len(column.values), dtype=np.int64) if topology is None else topology.by_id
        if self._changes:
            by_id = by_id.copy()
            for (label, value), change in self._changes.items():
                id_ = column.id_of(value) if label == key else -1
                if id_ >= 0:
                    by_id[id_] += change
        found: Counts = by_id[column.ids[rows]]
        return found
