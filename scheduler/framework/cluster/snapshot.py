"""Keep all nodes at one moment: a list of `NodeInfo`, and the same as columns.

The scheduler's cache updates it before each cycle, touching only the rows that changed. It can also be
changed directly and reverted (`fork`, `revert`), for simulations. Rows are in the order in which nodes are
tried.

Arrays are kept resource by resource (`[resources, nodes]` in memory), since plugins look at one resource of
many nodes; `allocatable` and `requested` show them as `[nodes, resources]`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework import resource_columns
from nominee.scheduler.framework.cluster.change_log import ChangeLog
from nominee.scheduler.framework.cluster.columns import Column, Extract, Follower, Rows
from nominee.scheduler.framework.types import NodeInfo, PodInfo

_CAPACITY_MIN = 16
COLUMNS_MAX = 512  # derived columns (labels, images, ...); with more the oldest is dropped
FORKS_MAX = 64

Int64s = NDArray[np.int64]
C = TypeVar("C")
F = TypeVar("F", bound=Follower)


@dataclass(slots=True)
class _Fork:
    """The state to restore: former NodeInfo by name (None: there was none), and the order if it changed."""

    former: dict[str, NodeInfo | None] = field(default_factory=dict)
    order: list[str] | None = None


class Snapshot:
    """Nodes as rows."""

    def __init__(self, nodes: Iterable[NodeInfo] = ()) -> None:
        self.nodes: list[NodeInfo] = []
        self.row_of: dict[str, int] = {}
        self.generation = 0  # of the cache, when it was last brought up to date
        self.structure = 0  # the cache's structure version that the order is of
        self.layout = 0  # changes when a row comes, goes or moves
        self.changes = ChangeLog()
        self._companions: dict[type[Any], Any] = {}
        self._forks: list[_Fork] = []
        self._columns: dict[Hashable, Follower] = {}
        self._capacity = _CAPACITY_MIN
        resources = resource_columns.count()
        self._allocatable = np.zeros((resources, _CAPACITY_MIN), dtype=np.int64)
        self._requested = np.zeros((resources, _CAPACITY_MIN), dtype=np.int64)
        self._free = np.zeros((resources, _CAPACITY_MIN), dtype=np.int64)
        self._nonzero = np.zeros((2, _CAPACITY_MIN), dtype=np.int64)
        self._pods_free = np.zeros((1, _CAPACITY_MIN), dtype=np.int64)
        self._unschedulable = np.zeros((1, _CAPACITY_MIN), dtype=np.bool_)
        self.unschedulable_count = 0
        self.tainted_count = 0
        self.image_count = 0  # nodes that report images
        for info in nodes:
            self._append(info)

    # Reading

    def __len__(self) -> int:
        return len(self.nodes)

    def get(self, name: str) -> NodeInfo | None:
        """Return the node of that name, or None."""
        row = self.row_of.get(name)
        return None if row is None else self.nodes[row]

    def nodes_at(self, rows: Rows) -> list[NodeInfo]:
        """Return the nodes of these rows, in their order."""
        if isinstance(rows, slice):
            return self.nodes[rows]
        nodes = self.nodes
        return [nodes[row] for row in rows.tolist()]

    @property
    def allocatable(self) -> Int64s:
        """Return `[nodes, resources]`; columns as numbered by `resource_columns`."""
        return self._allocatable[:, : len(self.nodes)].T

    @property
    def requested(self) -> Int64s:
        """Return `[nodes, resources]`: the requests of the pods of each node."""
        return self._requested[:, : len(self.nodes)].T

    @property
    def unschedulable(self) -> NDArray[np.bool_]:
        """Return `[nodes]`: spec.unschedulable."""
        return self._unschedulable[0, : len(self.nodes)]

    @property
    def pods_free(self) -> Int64s:
        """Return `[nodes]`: how many more pods each node may have; negative if it has too many."""
        return self._pods_free[0, : len(self.nodes)]

    def allocatable_of(self, resource: int) -> Int64s:
        """Return `[nodes]`: the allocatable amount of one resource."""
        return self._resource(self._allocatable, resource)

    def requested_of(self, resource: int) -> Int64s:
        """Return `[nodes]`: the requested amount of one resource."""
        return self._resource(self._requested, resource)

    def nonzero_of(self, resource: int) -> Int64s:
        """Return `[nodes]`: cpu (0) or memory (1) with defaults for containers without requests."""
        return self._nonzero[resource, : len(self.nodes)]

    def free_of(self, resource: int) -> Int64s:
        """Return `[nodes]`: allocatable less requested of one resource; may be negative."""
        return self._resource(self._free, resource)

    def free_at(self, rows: NDArray[np.intp]) -> Int64s:
        """Return `[resources, rows]`: a copy of allocatable less requested."""
        return self._free[:, rows]

    def _resource(self, array: Int64s, resource: int) -> Int64s:
        if resource >= len(array):
            return np.zeros(len(self.nodes), dtype=np.int64)
        return array[resource, : len(self.nodes)]

    def column(self, key: Hashable, extract: Extract, *, follows_pods: bool = False) -> Column:
        """Return the column of an attribute, built at its first use and kept up to date from then on."""
        found = self._columns.get(key)
        if found is None:
            return self.follower(
                key, lambda capacity: Column(extract, follows_pods=follows_pods, capacity=capacity)
            )
        return cast("Column", found)

    def follower(self, key: Hashable, make: Callable[[int], F]) -> F:
        """Return a follower of every row, made (for a capacity) and given all rows at its first use."""
        found = self._columns.get(key)
        if found is None:
            if len(self._columns) >= COLUMNS_MAX:
                del self._columns[next(iter(self._columns))]
            found = self._columns[key] = make(self._capacity)
            for row, info in enumerate(self.nodes):
                found.append(row, info)
        return cast("F", found)

    def forget(self, key: Hashable) -> None:
        """Drop the column of that key, since a source of it other than the nodes has changed."""
        self._columns.pop(key, None)

    def label_column(self, key: str) -> Column:
        """Return the values of one label; None where a node does not have it."""
        return self.column(("label", key), lambda info: info.labels.get(key))

    def companion(self, kind: type[C]) -> C:
        """Return the object of a class that follows this snapshot by `changes`, made at its first use."""
        found: C | None = self._companions.get(kind)
        if found is None:
            found = self._companions[kind] = kind()
        return found

    # Changing, by the cache

    def put(self, info: NodeInfo) -> None:
        """Take over a node, which the snapshot owns from now on: a new row at the end, or in place."""
        row = self.row_of.get(info.name)
        if row is None:
            self._append(info)
        else:
            self._replace(row, info)

    def drop(self, name: str) -> None:
        """Take a node out."""
        row = self.row_of[name]
        size = len(self.nodes)
        for array in self._arrays():
            array[:, row : size - 1] = array[:, row + 1 : size]
        for column in self._columns.values():
            column.drop(row, size)
        info = self.nodes.pop(row)
        self.layout += 1
        self.changes.note(name)
        self.unschedulable_count -= info.unschedulable
        self.tainted_count -= bool(info.taints)
        self.image_count -= bool(info.images)
        self.row_of = {node.name: row for row, node in enumerate(self.nodes)}

    def reorder(self, names: list[str]) -> None:
        """Bring the rows into this order; it must name every row once."""
        order = np.fromiter((self.row_of[name] for name in names), dtype=np.intp, count=len(names))
        if len(order) != len(self.nodes):
            raise ValueError(f"order of {len(order)} names for {len(self.nodes)} nodes")
        for array in self._arrays():
            array[:, : len(order)] = array[:, order]
        for column in self._columns.values():
            column.reorder(order)
        self.nodes = [self.nodes[row] for row in order.tolist()]
        self.row_of = {name: row for row, name in enumerate(names)}
        self.layout += 1

    def _arrays(self) -> tuple[NDArray[np.generic], ...]:
        return (
            self._allocatable,
            self._requested,
            self._free,
            self._nonzero,
            self._pods_free,
            self._unschedulable,
        )

    def _append(self, info: NodeInfo) -> None:
        row = len(self.nodes)
        if row == self._capacity:
            self._grow()
        self.nodes.append(info)
        self.row_of[info.name] = row
        self.layout += 1
        self.changes.note(info.name)
        for column in self._columns.values():
            column.append(row, info)
        self._write_node(row, info)
        self._write_pods(row, info)
        self.unschedulable_count += info.unschedulable
        self.tainted_count += bool(info.taints)
        self.image_count += bool(info.images)

    def _replace(self, row: int, info: NodeInfo) -> None:
        former = self.nodes[row]
        self.nodes[row] = info
        self.changes.note(info.name)
        same_node = former.node is info.node and former.images is info.images
        if not same_node:
            self._write_node(row, info)
            self.unschedulable_count += info.unschedulable - former.unschedulable
            self.tainted_count += bool(info.taints) - bool(former.taints)
            self.image_count += bool(info.images) - bool(former.images)
        self._write_pods(row, info)
        for column in self._columns.values():
            if column.follows_pods or not same_node:
                column.replace(row, info)

    def _write_node(self, row: int, info: NodeInfo) -> None:
        amounts = info.allocatable
        if len(amounts) > len(self._allocatable):
            self._grow_resources()
        self._allocatable[: len(amounts), row] = amounts
        self._allocatable[len(amounts) :, row] = 0
        self._unschedulable[0, row] = info.unschedulable

    def _write_pods(self, row: int, info: NodeInfo) -> None:
        amounts = info.requested
        if len(amounts) > len(self._requested):
            self._grow_resources()
        requested = self._requested[:, row]
        requested[: len(amounts)] = amounts
        if len(amounts) < len(requested):
            requested[len(amounts) :] = 0
        np.subtract(self._allocatable[:, row], requested, out=self._free[:, row])
        self._nonzero[0, row] = info.nonzero_cpu
        self._nonzero[1, row] = info.nonzero_memory
        self._pods_free[0, row] = info.allowed_pods - len(info.pods)

    def _grow(self) -> None:
        self._capacity *= 2
        self._allocatable = _widened(self._allocatable, self._capacity)
        self._requested = _widened(self._requested, self._capacity)
        self._free = _widened(self._free, self._capacity)
        self._nonzero = _widened(self._nonzero, self._capacity)
        self._pods_free = _widened(self._pods_free, self._capacity)
        unschedulable = np.zeros((1, self._capacity), dtype=np.bool_)
        unschedulable[:, : self._unschedulable.shape[1]] = self._unschedulable
        self._unschedulable = unschedulable
        for column in self._columns.values():
            column.grow(self._capacity)

    def _grow_resources(self) -> None:
        more = resource_columns.count() - len(self._allocatable)
        empty = np.zeros((more, self._capacity), dtype=np.int64)
        self._allocatable = np.concatenate((self._allocatable, empty))
        self._requested = np.concatenate((self._requested, empty))
        self._free = np.concatenate((self._free, empty))

    # Changing, in a simulation

    def fork(self) -> None:
        """Begin changes that `revert` undoes or `commit` keeps; forks nest."""
        if len(self._forks) >= FORKS_MAX:
            raise RuntimeError(f"more than {FORKS_MAX} forks of a snapshot")
        self._forks.append(_Fork())

    def revert(self) -> None:
        """Undo everything since the last fork."""
        fork = self._forks.pop()
        for name, former in fork.former.items():
            if former is not None:
                self.put(former)
            elif name in self.row_of:
                self.drop(name)
        if fork.order is not None:
            self.reorder(fork.order)

    def commit(self) -> None:
        """Keep the changes since the last fork; an outer fork can still undo them."""
        fork = self._forks.pop()
        if self._forks:
            outer = self._forks[-1]
            for name, former in fork.former.items():
                outer.former.setdefault(name, former)
            if fork.order is not None and outer.order is None:
                # Nodes that the outer fork has added before are removed by its revert.
                outer.order = [n for n in fork.order if outer.former.get(n, self) is not None]

    def add_node(self, info: NodeInfo) -> None:
        """Add a node; ValueError if it is there already."""
        if info.name in self.row_of:
            raise ValueError(f"node {info.name} is in the snapshot already")
        if self._forks:
            self._forks[-1].former.setdefault(info.name, None)
        self._append(info)

    def remove_node(self, name: str) -> None:
        """Remove a node and its pods; KeyError if it is not there."""
        info = self.nodes[self.row_of[name]]
        if self._forks:
            fork = self._forks[-1]
            if fork.order is None:
                fork.order = [n.name for n in self.nodes if fork.former.get(n.name, info) is not None]
            fork.former.setdefault(name, info)
        self.drop(name)

    def add_pod(self, pod: PodInfo, node_name: str) -> None:
        """Put a pod on a node; KeyError if there is no such node."""
        row = self.row_of[node_name]
        info = self._own(row)
        info.add_pod(pod)
        self._written(row, info)

    def remove_pod(self, uid: str, node_name: str) -> PodInfo | None:
        """Take a pod off a node; None if it is not there."""
        row = self.row_of[node_name]
        info = self._own(row)
        removed = info.remove_pod(uid)
        self._written(row, info)
        return removed

    def _own(self, row: int) -> NodeInfo:
        """Return the NodeInfo of a row, to be changed: a copy if a fork may need the present one."""
        info = self.nodes[row]
        if self._forks and info.name not in self._forks[-1].former:
            self._forks[-1].former[info.name] = info
            info = info.clone()
            self.nodes[row] = info
        return info

    def _written(self, row: int, info: NodeInfo) -> None:
        self.changes.note(info.name)
        self._write_pods(row, info)
        for column in self._columns.values():
            if column.follows_pods:
                column.replace(row, info)


def _widened(array: Int64s, capacity: int) -> Int64s:
    wide = np.zeros((array.shape[0], capacity), dtype=np.int64)
    wide[:, : array.shape[1]] = array
    return wide
