"""Keep the room on some nodes as columns, and change it as pods come and go there, without their nodes.

A filter that looks at no more of a node's pods than their requests and their number (`RoomFilterPlugin`) can
judge many nodes at once from it, in the snapshot and in a preemption's dry run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework import resource_columns

if TYPE_CHECKING:
    from nominee.scheduler.framework.cluster.snapshot import Snapshot
    from nominee.scheduler.framework.types import PodInfo

Int64s = NDArray[np.int64]


class Room(Protocol):
    """The room on nodes, one element each. A snapshot is one."""

    @property
    def pods_free(self) -> Int64s:
        """Return how many more pods each node may have."""
        ...

    def free_of(self, resource: int) -> Int64s:
        """Return allocatable less requested of one resource."""
        ...

    def allocatable_of(self, resource: int) -> Int64s:
        """Return the allocatable amount of one resource."""
        ...


class TrialRoom:
    """The room on some rows of a snapshot, which stays as it is when this room changes."""

    def __init__(self, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        self._snapshot = snapshot
        self.rows = rows
        self._free = np.zeros((resource_columns.count(), len(rows)), dtype=np.int64)
        known = snapshot.free_at(rows)
        self._free[: len(known)] = known
        self._pods_free = snapshot.pods_free[rows]

    @property
    def pods_free(self) -> Int64s:
        return self._pods_free

    def free_of(self, resource: int) -> Int64s:
        free: Int64s = self._free[resource]
        return free

    def allocatable_of(self, resource: int) -> Int64s:
        return self._snapshot.allocatable_of(resource)[self.rows]

    def give(self, positions: NDArray[np.intp], amounts: Int64s, pods: Int64s | int = 1) -> None:
        """Free `amounts` (`[positions, resources]`) and so many pods at each position, named once."""
        self._free[:, positions] += amounts.T
        self._pods_free[positions] += pods

    def take(self, positions: NDArray[np.intp], amounts: Int64s, pods: Int64s | int = 1) -> None:
        """Use `amounts` (`[positions, resources]`) and so many pods at each position, named once."""
        self._free[:, positions] -= amounts.T
        self._pods_free[positions] -= pods

    def keep(self, positions: NDArray[np.intp]) -> None:
        """Forget the nodes at all other positions."""
        self.rows = self.rows[positions]
        self._free = self._free[:, positions]
        self._pods_free = self._pods_free[positions]


def amounts_of(pods: tuple[PodInfo, ...]) -> Int64s:
    """Return the requests of the pods as `[pods, resources]`."""
    amounts = np.zeros((len(pods), resource_columns.count()), dtype=np.int64)
    for index, pod in enumerate(pods):
        for column, amount in pod.requests:
            amounts[index, column] = amount
    return amounts
