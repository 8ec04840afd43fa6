"""The failpoints of simulated processes: each process has its own, under the names that modules declare."""

from __future__ import annotations

from contextvars import ContextVar

from machinery.runtime import failpoints
from machinery.runtime.failpoints import Failpoint, Registry


class ProcessPoints(Registry):
    """The points of one process, made when they are first passed or armed."""

    def point(self, name: str) -> Failpoint:
        """Return the point of a name."""
        return self._points.get(name) or self.declare(name)


POINTS: ContextVar[ProcessPoints | None] = ContextVar("points", default=None)


def select(name: str) -> Failpoint:
    """Return the running process's point; outside of processes one that is never armed."""
    points = POINTS.get()
    return (_OUTSIDE if points is None else points).point(name)


_OUTSIDE = ProcessPoints()


def install() -> None:
    """Give each simulated process its own failpoints, from now on."""
    failpoints.REGISTRY.select = select


def uninstall() -> None:
    """Undo `install`."""
    failpoints.REGISTRY.select = None
