"""Which nodes are being deleted at the moment. Source: cluster-autoscaler 1.36, deletion tracker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deletion:
    group: str
    drain: bool


class Deletions:
    """By node name, from the taint until the provider has taken the machine back or it failed."""

    def __init__(self) -> None:
        self._active: dict[str, Deletion] = {}

    def start(self, node: str, group: str, *, drain: bool) -> None:
        self._active[node] = Deletion(group, drain)

    def end(self, node: str) -> None:
        self._active.pop(node, None)

    def snapshot(self) -> Deletions:
        """Return a copy that does not change while deletions end."""
        copy = Deletions()
        copy._active = dict(self._active)
        return copy

    def names(self) -> frozenset[str]:
        return frozenset(self._active)

    def drained(self) -> list[str]:
        return sorted(name for name, deletion in self._active.items() if deletion.drain)

    def empty(self) -> list[str]:
        return sorted(name for name, deletion in self._active.items() if not deletion.drain)

    def of_group(self, group: str) -> int:
        return sum(deletion.group == group for deletion in self._active.values())
