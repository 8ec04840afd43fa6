"""Copies of the nodes that other pods are nominated to, with those pods added: a second, small snapshot.

A pod must fit a node also beside the pods of equal or higher priority that are nominated to it (KEP-1923).
During a wave of preemptions there are many such nodes, and they change little from cycle to cycle, so the
copies made for one pod are kept for the next of the same priority.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from nominee.scheduler.framework.nominator import Nominator
from nominee.scheduler.framework.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo, PodInfo

PRIORITIES_MAX = 8  # priorities to keep copies for; the least recently used is dropped


@dataclass(slots=True)
class _Source:
    """The node and the nominated pods that a copy was made of."""

    node: NodeInfo
    nominated: tuple[PodInfo, ...]


@dataclass(slots=True)
class _Copies:
    """The copies for one priority, and by node name the source of each."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    sources: dict[str, _Source] = field(default_factory=dict)


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
        if copies is None:
            copies = self._by_priority[pod.priority] = _Copies()
        own = self._nominator.node_of(pod.uid)
        current: set[str] = set()
        for name, pods in self._nominator.by_node.items():
            row = snapshot.row_of.get(name)
            if row is None or name == own:
                continue
            nominated = tuple(other for other in pods.values() if other.priority >= pod.priority)
            if nominated:
                current.add(name)
                _update(copies, snapshot.nodes[row], nominated)
        for gone in copies.sources.keys() - current:
            copies.snapshot.drop(gone)
            del copies.sources[gone]
        rows = (snapshot.row_of[node.name] for node in copies.snapshot.nodes)
        return Contended(copies.snapshot, np.fromiter(rows, dtype=np.intp, count=len(copies.snapshot)))


def _competes(other: PodInfo, pod: PodInfo) -> bool:
    return other.priority >= pod.priority and other.uid != pod.uid


def _update(copies: _Copies, node: NodeInfo, nominated: tuple[PodInfo, ...]) -> None:
    """Replace the copy of a node if the node or its nominations have changed."""
    source = copies.sources.get(node.name)
    if source is not None and source.node is node and source.nominated == nominated:
        return
    copy = node.clone()
    for other in nominated:
        copy.add_pod(other)
    copies.snapshot.put(copy)
    copies.sources[node.name] = _Source(node, nominated)
