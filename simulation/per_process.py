"""Failpoints and call faults of each simulated process, where a real process has one registry of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from nominee.machinery.runtime import failpoints, runtime
from nominee.machinery.runtime.faults.call_faults import FAULTS, Faults
from nominee.machinery.runtime.faults.failpoint_registry import Point, PointState, Registry


class ProcessPoints(Registry):
    """The failpoints of one process, made when they are first passed or armed."""

    def point(self, name: str) -> Point:
        return self._points.get(name) or self.declare(name)

    def states(self) -> list[PointState]:
        """Return the state of every point that is declared, also if this process has not passed it."""
        names, early = failpoints.REGISTRY.names(), self._early
        untouched = {name: PointState(name, early.get(name, ""), 0, 0, 0, {}) for name in names}
        own = {point.name: point for point in super().states()}
        return [found for _, found in sorted((untouched | own).items())]

    def arm(self, name: str, action: str) -> None:
        """Arm a point that some module declares. Raises: ActionError."""
        if failpoints.REGISTRY.get(name) is None:
            raise failpoints.ActionError(failpoints.REGISTRY.no_such(name))
        self.point(name)
        super().arm(name, action)


@contextmanager
def install() -> Iterator[None]:
    """Let each simulated process have its own failpoints and call faults, until the block ends."""
    rules, FAULTS.rules = FAULTS.rules, ()
    runtime.simulated = True
    try:
        yield
    finally:
        runtime.simulated = False
        FAULTS.rules = rules


def use_rules(faults: Iterable[Faults]) -> None:
    """Have calls look for faults if a process has any: the interpreter's own rules are those of all."""
    FAULTS.rules = tuple(rule for each in faults for rule in each.rules)
