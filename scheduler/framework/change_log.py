"""Record the changed nodes of a snapshot, for the state that is derived from them.

A reader keeps the position up to which it has read and asks for the changes since.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nominee.scheduler.framework.snapshot import Snapshot
    from nominee.scheduler.framework.types import NodeInfo

CHANGES_MAX: Final = 1 << 16  # kept; a reader that is further behind reads everything


class ChangeLog:
    """Names of nodes in the order of their changes."""

    __slots__ = ("_names", "_start")

    def __init__(self) -> None:
        self._names: list[str] = []
        self._start = 0  # position of the first name that is kept

    @property
    def position(self) -> int:
        """Return the position behind the last change."""
        return self._start + len(self._names)

    def note(self, name: str) -> None:
        """Record that the node came, went or changed, or one of its pods did."""
        self._names.append(name)
        if len(self._names) > CHANGES_MAX:
            half = CHANGES_MAX // 2
            del self._names[:half]
            self._start += half

    def since(self, position: int) -> set[str] | None:
        """Return the nodes that have changed since a position; None if the log does not reach back so far."""
        if position < self._start:
            return None
        return set(self._names[position - self._start :])


class ChangeFollower(ABC):
    """State that is derived from a snapshot's nodes; `follow` it before use."""

    def __init__(self) -> None:
        self._position = -1  # in the change log; -1: nothing is read
        self._reset()

    def follow(self, snapshot: Snapshot) -> None:
        """Read the changes since the last call: of all nodes if the log does not reach back so far."""
        position = snapshot.changes.position
        if self._position == position:
            return
        changed = None if self._position < 0 else snapshot.changes.since(self._position)
        if changed is None:
            self._reset()
            changed = set(snapshot.row_of)
        for name in changed:
            self._follow_node(snapshot, name, snapshot.get(name))
        self._position = position

    @abstractmethod
    def _reset(self) -> None:
        """Forget all nodes."""

    @abstractmethod
    def _follow_node(self, snapshot: Snapshot, name: str, node: NodeInfo | None) -> None:
        """Read a node again; None: it is gone."""
