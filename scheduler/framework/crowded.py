"""Nodes that other pods are nominated to, with those pods added: a second, small snapshot.

A pod must fit a node also beside the pods of equal or higher priority that are nominated to it (KEP-1923).
During a wave of preemptions there are many such nodes, and they change little from cycle to cycle, so what
was made for one pod is kept for the next of the same priority.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduler.framework.nominator import Nominator
from scheduler.framework.snapshot import Snapshot
from scheduler.framework.types import NodeInfo, PodInfo

PRIORITIES_MAX = 8  # priorities to keep nodes for; the least recently used goes


@dataclass(slots=True)
class _Made:
    """From what a node's copy was made."""

    node: NodeInfo
    nominated: tuple[PodInfo, ...]


@dataclass(slots=True)
class _Kept:
    snapshot: Snapshot = field(default_factory=Snapshot)
    made: dict[str, _Made] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Crowded:
    """The small snapshot, and for each of its rows the row of the large one."""

    snapshot: Snapshot
    rows: NDArray[np.intp]


class CrowdedNodes:
    """Keeps the copies."""

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._by_priority: OrderedDict[int, _Kept] = OrderedDict()

    def rows(self, pod: PodInfo, snapshot: Snapshot) -> list[int]:
        """Rows of nodes where the pod competes with nominated ones."""
        found = []
        for name, pods in self._nominator.by_node.items():
            row = snapshot.row_of.get(name)
            if row is not None and any(_competes(other, pod) for other in pods.values()):
                found.append(row)
        return found

    def look(self, pod: PodInfo, snapshot: Snapshot) -> Crowded:
        """The copies of `rows`, except of the node that the pod itself is nominated to."""
        kept = self._by_priority.get(pod.priority)
        if kept is None:
            if len(self._by_priority) >= PRIORITIES_MAX:
                self._by_priority.popitem(last=False)
            kept = self._by_priority[pod.priority] = _Kept()
        self._by_priority.move_to_end(pod.priority)
        own = self._nominator.node_of(pod.uid)
        wanted: set[str] = set()
        for name, pods in self._nominator.by_node.items():
            row = snapshot.row_of.get(name)
            if row is None or name == own:
                continue
            nominated = tuple(other for other in pods.values() if other.priority >= pod.priority)
            if nominated:
                wanted.add(name)
                _renew(kept, snapshot.nodes[row], nominated)
        for gone in kept.made.keys() - wanted:
            kept.snapshot.drop(gone)
            del kept.made[gone]
        names = (snapshot.row_of[node.name] for node in kept.snapshot.nodes)
        return Crowded(kept.snapshot, np.fromiter(names, dtype=np.intp, count=len(kept.snapshot)))


def _competes(other: PodInfo, pod: PodInfo) -> bool:
    return other.priority >= pod.priority and other.uid != pod.uid


def _renew(kept: _Kept, node: NodeInfo, nominated: tuple[PodInfo, ...]) -> None:
    """Make the copy anew if the node or its nominations have changed."""
    made = kept.made.get(node.name)
    if made is not None and made.node is node and made.nominated == nominated:
        return
    copy = node.clone()
    for other in nominated:
        copy.add_pod(other)
    kept.snapshot.put(copy)
    kept.made[node.name] = _Made(node, nominated)
