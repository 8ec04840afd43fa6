"""Keep the pods of each node by importance, and their requests, from one preemption to the next."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework import resource_columns
from nominee.scheduler.framework.cluster.room import amounts_of
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo, PodInfo


@dataclass(frozen=True, slots=True)
class NodePods:
    """The pods of one node, the most important first. `amounts`: `[pods, resources]`.

    The order is that of single pods (`by_importance`) as long as all that have started did so before now.
    """

    pods: tuple[PodInfo, ...]
    ranks: list[int]  # priorities times -1
    amounts: NDArray[np.int64]
    last_started: float

    @staticmethod
    def of(node: NodeInfo) -> NodePods:
        """Return the pods of the node, sorted."""
        pods = tuple(sorted(node.pods.values(), key=_importance))
        last = max((pod.started for pod in pods if pod.started is not None), default=-math.inf)
        return NodePods(pods, [-pod.priority for pod in pods], amounts_of(pods), last)

    def first_below(self, priority: int) -> int:
        """Return the index of the first pod of a lower priority, which all pods behind it have too."""
        return bisect_right(self.ranks, -priority)


def _importance(pod: PodInfo) -> tuple[int, float]:
    return -pod.priority, math.inf if pod.started is None else pod.started


class PodsByImportance:
    """A companion of a snapshot; `follow` it before use."""

    def __init__(self) -> None:
        self._by_node: dict[str, NodePods] = {}
        self._position = -1
        self._resources = 0

    def follow(self, snapshot: Snapshot) -> None:
        """Forget the nodes that have changed since the last time."""
        changed = snapshot.changes.since(self._position) if self._position >= 0 else None
        if changed is None or self._resources != resource_columns.count():
            self._by_node.clear()
        elif len(changed) < len(self._by_node):
            for name in changed:
                self._by_node.pop(name, None)
        else:
            self._by_node = {name: each for name, each in self._by_node.items() if name not in changed}
        self._position = snapshot.changes.position
        self._resources = resource_columns.count()

    def on(self, node: NodeInfo) -> NodePods:
        """Return the pods of a node of the snapshot."""
        found = self._by_node.get(node.name)
        if found is None:
            found = self._by_node[node.name] = NodePods.of(node)
        return found
