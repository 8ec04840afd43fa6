"""Keep an attribute of all nodes as one numpy column of small numbers, one per distinct value.

A predicate on the attribute ("is the taint set tolerated?") is evaluated once per distinct value and then
looked up for all nodes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nominee.scheduler.framework.types import NodeInfo

Extract = Callable[["NodeInfo"], Hashable]
# Rows of a snapshot: a contiguous run, or indices in the order in which nodes are tried.
Rows = slice | NDArray[np.intp]


class Follower(Protocol):
    """A structure that a snapshot keeps up to date, row by row."""

    follows_pods: bool  # whether a change of the node's pods changes the value

    def append(self, row: int, info: NodeInfo) -> None: ...

    def replace(self, row: int, info: NodeInfo) -> None: ...

    def drop(self, row: int, size: int) -> None:
        """Remove a row; the rows after it move up. `size` is the number of rows before."""
        ...

    def reorder(self, order: NDArray[np.intp]) -> None:
        """Reorder the rows: row i gets the values of row order[i]."""
        ...

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        ...


class Column:
    """Ids by row, values by id; an id is reused when no row has it any more."""

    __slots__ = ("_free", "_id_of", "_references", "extract", "follows_pods", "ids", "values", "version")

    ids: NDArray[np.int32]  # by row; longer than there are rows

    def __init__(self, extract: Extract, *, follows_pods: bool, capacity: int) -> None:
        """Keep no row yet. `follows_pods`: the value depends on the node's pods too."""
        self.extract = extract
        self.follows_pods = follows_pods
        self.ids = np.zeros(capacity, dtype=np.int32)
        self.values: list[Any] = []
        self.version = 0  # changes with every id of a row
        self._id_of: dict[Hashable, int] = {}
        self._references: list[int] = []
        self._free: list[int] = []

    @property
    def distinct(self) -> int:
        """Return how many values the rows have."""
        return len(self._id_of)

    def is_used(self) -> NDArray[np.bool_]:
        """Return for each id whether some row has it."""
        if not self._free:
            return np.ones(len(self.values), dtype=np.bool_)
        return np.array(self._references, dtype=np.bool_)

    def id_of(self, value: Hashable) -> int:
        """Return the id of a value, or -1 if no row has it."""
        return self._id_of.get(value, -1)

    def append(self, row: int, info: NodeInfo) -> None:
        """Add the value of a new row."""
        self.ids[row] = self._acquire(self.extract(info))
        self.version += 1

    def replace(self, row: int, info: NodeInfo) -> None:
        """Replace the value of a row."""
        value = self.extract(info)
        old = int(self.ids[row])
        if self.values[old] != value:
            self._release(old)
            self.ids[row] = self._acquire(value)
            self.version += 1

    def drop(self, row: int, size: int) -> None:
        """Take a row out; the rows after it move up. `size` is the number of rows before."""
        self._release(int(self.ids[row]))
        self.ids[row : size - 1] = self.ids[row + 1 : size]
        self.version += 1

    def reorder(self, order: NDArray[np.intp]) -> None:
        self.ids[: len(order)] = self.ids[order]
        self.version += 1

    def grow(self, capacity: int) -> None:
        ids = np.zeros(capacity, dtype=np.int32)
        ids[: len(self.ids)] = self.ids
        self.ids = ids

    def _acquire(self, value: Hashable) -> int:
        known = self._id_of.get(value)
        if known is not None:
            self._references[known] += 1
            return known
        if self._free:
            new = self._free.pop()
            self.values[new] = value
            self._references[new] = 1
        else:
            new = len(self.values)
            self.values.append(value)
            self._references.append(1)
        self._id_of[value] = new
        return new

    def _release(self, id_: int) -> None:
        self._references[id_] -= 1
        if not self._references[id_]:
            del self._id_of[self.values[id_]]
            self.values[id_] = None
            self._free.append(id_)

    def _ask(self, question: Callable[[Any], Any], rows: Rows, dtype: Any) -> NDArray[Any]:
        """Return the function's result for each row; it is called once per value that these rows have."""
        ids = self.ids[rows]
        answers = np.zeros(len(self.values), dtype=dtype)
        if len(self._id_of) <= max(len(ids), 1):
            for value, id_ in self._id_of.items():
                answers[id_] = question(value)
        else:
            for id_ in set(ids.tolist()):
                answers[id_] = question(self.values[id_])
        found: NDArray[Any] = answers[ids]
        return found

    def mask(self, question: Callable[[Any], bool], rows: Rows) -> NDArray[np.bool_]:
        """Return the predicate's result for each of the rows."""
        return self._ask(question, rows, np.bool_)

    def numbers(self, question: Callable[[Any], int], rows: Rows) -> NDArray[np.int64]:
        """Return the function's number for each of the rows."""
        return self._ask(question, rows, np.int64)
