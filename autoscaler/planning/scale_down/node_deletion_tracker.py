"""Node deletions in progress. Source: cluster-autoscaler 1.36, actuation's NodeDeletionTracker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Deletion:
    group: str
    drain: bool


class NodeDeletionTracker:
    """Track nodes from their taint until the provider has deleted them or the deletion has failed."""

    def __init__(self) -> None:
        self._in_progress: dict[str, _Deletion] = {}

    def start_deletion(self, node: str, group: str, *, drain: bool) -> None:
        self._in_progress[node] = _Deletion(group, drain)

    def end_deletion(self, node: str) -> None:
        self._in_progress.pop(node, None)

    def snapshot(self) -> NodeDeletionTracker:
        """Return a copy that does not change while deletions end."""
        copy = NodeDeletionTracker()
        copy._in_progress = dict(self._in_progress)
        return copy

    def nodes(self) -> frozenset[str]:
        return frozenset(self._in_progress)

    def drains(self) -> list[str]:
        """Return the names of the nodes that are being drained, sorted."""
        return sorted(name for name, deletion in self._in_progress.items() if deletion.drain)

    def empty(self) -> list[str]:
        """Return the names of the nodes that are deleted without a drain, sorted."""
        return sorted(name for name, deletion in self._in_progress.items() if not deletion.drain)

    def count(self, group: str) -> int:
        """Return how many nodes of a group are being deleted."""
        return sum(deletion.group == group for deletion in self._in_progress.values())
