"""Keep numbers by node name, and show them as an array by row when they are used."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.cluster.domain_sums import DomainSums
from nominee.scheduler.framework.cluster.snapshot import Snapshot

Counts = NDArray[np.int64]


class NodeCounts:
    """A number for each node; nodes whose number is 0 take no room.

    The array is made at first use and then kept, until rows of the snapshot move.
    """

    __slots__ = ("_array", "_domains", "_layout", "by_node")

    def __init__(self) -> None:
        self.by_node: dict[str, int] = {}
        self._array: Counts | None = None
        self._layout = -1  # of the snapshot, when the array was made
        self._domains = DomainSums()

    def put(self, snapshot: Snapshot, name: str, count: int) -> None:
        """Set the node's number."""
        if count:
            self.by_node[name] = count
        else:
            self.by_node.pop(name, None)
        if self._array is None:
            return
        row = snapshot.row_of.get(name)
        if self._layout != snapshot.layout or row is None:
            self._array = None
        else:
            self._domains.add(row, count - int(self._array[row]))
            self._array[row] = count

    def add(self, snapshot: Snapshot, name: str, change: int) -> None:
        """Add to the node's number."""
        self.put(snapshot, name, self.by_node.get(name, 0) + change)

    def array(self, snapshot: Snapshot) -> Counts:
        """Return the numbers as `[nodes]`; to be read only, and until the snapshot changes."""
        if self._array is None or self._layout != snapshot.layout:
            size = len(self.by_node)
            row_of = snapshot.row_of
            rows = np.fromiter((row_of[name] for name in self.by_node), dtype=np.intp, count=size)
            array = np.zeros(len(snapshot), dtype=np.int64)
            array[rows] = np.fromiter(self.by_node.values(), dtype=np.int64, count=size)
            self._array, self._layout = array, snapshot.layout
            self._domains.clear()
        return self._array

    def by_domain(self, snapshot: Snapshot, label: str) -> Counts:
        """Return the sums by the ids of a label's column; to be read only, and until the snapshot changes."""
        return self._domains.of(snapshot, label, self.array(snapshot))
