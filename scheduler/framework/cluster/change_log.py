"""Record the changed nodes of a snapshot, for the state that is derived from them.

A reader keeps the position up to which it has read and asks for the changes since.
"""

from __future__ import annotations

from typing import Final

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
