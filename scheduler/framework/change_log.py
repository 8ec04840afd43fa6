"""Which nodes of a snapshot have changed, so that what is derived from them can follow.

A reader remembers the position up to which it has followed and asks what came since.
"""

from __future__ import annotations

from typing import Final

CHANGES_MAX: Final = 1 << 16  # kept; a reader that is further behind starts anew


class ChangeLog:
    """Names of nodes in the order of their changes."""

    __slots__ = ("_names", "_start")

    def __init__(self) -> None:
        self._names: list[str] = []
        self._start = 0  # position of the first name that is kept

    @property
    def position(self) -> int:
        """Behind the last change."""
        return self._start + len(self._names)

    def note(self, name: str) -> None:
        """The node came, went or changed, or one of its pods did."""
        self._names.append(name)
        if len(self._names) > CHANGES_MAX:
            half = CHANGES_MAX // 2
            del self._names[:half]
            self._start += half

    def since(self, position: int) -> set[str] | None:
        """The nodes that have changed since; None if that is not known any more."""
        if position < self._start:
            return None
        return set(self._names[position - self._start :])
