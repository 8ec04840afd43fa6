"""Nodes on which pods were scheduled in earlier simulations. Source: cluster-autoscaler 1.36, Hints."""

from __future__ import annotations


class SchedulingHints:
    """Keep the last node of each pod, by pod UID. A hint that is not used for a whole loop is dropped."""

    def __init__(self) -> None:
        self._current: dict[str, str] = {}
        self._previous: dict[str, str] = {}

    def get(self, uid: str) -> str:
        """Return the name of a node, or ""."""
        return self._current.get(uid) or self._previous.get(uid, "")

    def set(self, uid: str, node_name: str) -> None:
        """Record on which node a pod was scheduled."""
        self._current[uid] = node_name

    def nodes(self) -> frozenset[str]:
        """Return the nodes that pods had in this loop or the last one."""
        return frozenset((*self._current.values(), *self._previous.values()))

    def drop_old(self) -> None:
        """End a loop: drop the hints that were neither set nor renewed in it."""
        self._previous, self._current = self._current, {}
