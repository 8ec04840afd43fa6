"""Copies of the nodes that other pods are nominated to, with those pods added: a second, small snapshot.

A pod must fit a node also beside the pods of equal or higher priority that are nominated to it (KEP-1923).
During a wave of preemptions there are many such nodes, and they change little from cycle to cycle, so the
copies made for one pod are kept for the next of the same priority.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.types import PodInfo

PRIORITIES_MAX = 8  # priorities to keep copies for; the least recently used is dropped


class _Copies:
    """The copies for one priority, brought up to date by the changes since the last time."""

    def __init__(self, source: Snapshot) -> None:
        self.source = source
        self.snapshot = Snapshot()
        self._rows = np.empty(0, dtype=np.intp)
        self._layouts = (-1, -1)  # that `_rows` is of
        self._position = -1  # read up to here of the changes of `source`
        self._nominated_position = -1
        self._left_out = ""  # the node that there was no copy of at the last time

    def follow(self, nominator: Nominator, priority: int, left_out: str) -> None:
        """Bring the copies up to date; `left_out`: the node that there is to be no copy of."""
        for name in (self._changed(nominator) | {self._left_out, left_out}) - {""}:
            row = self.source.row_of.get(name)
            pods = () if row is None or name == left_out else nominator.pods_on(name)
            nominated = [other for other in pods if other.priority >= priority]
            if row is not None and nominated:
                copy = self.source.nodes[row].clone()
                for other in nominated:
                    copy.add_pod(other)
                self.snapshot.put(copy)
            elif name in self.snapshot.row_of:
                self.snapshot.drop(name)
        self._left_out = left_out

    def _changed(self, nominator: Nominator) -> set[str]:
        """Return the nodes whose copy may have to change."""
        nodes, nominations = self.source.changes, nominator.changes
        changed = nodes.since(self._position) if self._position >= 0 else None
        nominated = nominations.since(self._nominated_position) if self._position >= 0 else None
        self._position, self._nominated_position = nodes.position, nominations.position
        if changed is None or nominated is None:
            return {*self.snapshot.row_of, *nominator.by_node}
        return nominated | {name for name in changed if name in nominator.by_node}

    def rows(self) -> NDArray[np.intp]:
        """Return for each copy the row of its node."""
        layouts = (self.source.layout, self.snapshot.layout)
        if self._layouts != layouts:
            rows = (self.source.row_of[node.name] for node in self.snapshot.nodes)
            self._rows = np.fromiter(rows, dtype=np.intp, count=len(self.snapshot))
            self._layouts = layouts
        return self._rows


@dataclass(frozen=True, slots=True)
class Contended:
    """The small snapshot, and for each of its rows the row of the large one."""

    snapshot: Snapshot
    rows: NDArray[np.intp]


class ContendedNodes:
    """Keeps the copies by priority."""

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._by_priority: LRUCache[int, _Copies] = LRUCache(PRIORITIES_MAX)

    def rows(self, pod: PodInfo, snapshot: Snapshot) -> list[int]:
        """Return the rows of the nodes where the pod competes with nominated pods."""
        found = []
        for name, pods in self._nominator.by_node.items():
            row = snapshot.row_of.get(name)
            if row is not None and any(_competes(other, pod) for other in pods.values()):
                found.append(row)
        return found

    def copies(self, pod: PodInfo, snapshot: Snapshot) -> Contended:
        """Return the copies of `rows`, except of the node that the pod itself is nominated to."""
        copies = self._by_priority.get(pod.priority)
        if copies is None or copies.source is not snapshot:
            copies = self._by_priority[pod.priority] = _Copies(snapshot)
        copies.follow(self._nominator, pod.priority, self._nominator.node_of(pod.uid))
        return Contended(copies.snapshot, copies.rows())


def _competes(other: PodInfo, pod: PodInfo) -> bool:
    return other.priority >= pod.priority and other.uid != pod.uid
