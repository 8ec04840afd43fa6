"""Follow the changes of a snapshot's nodes (`nominee.scheduler.framework.cluster.change_log`)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import NodeInfo


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
