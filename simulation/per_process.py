"""Failpoints and call faults of each simulated process, where a real process has one registry of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nominee.machinery.runtime import failpoints
from nominee.machinery.runtime.call_faults import FAULTS, Faults
from nominee.machinery.runtime.failpoints import Failpoint, PointState, Registry


class ProcessPoints(Registry):
    """The failpoints of one process, made when they are first passed or armed."""

    def point(self, name: str) -> Failpoint:
        """Return the point of a name."""
        return self._points.get(name) or self.declare(name)

    def states(self) -> list[PointState]:
        """Return the state of every point that is declared, also if this process has not passed it."""
        declared = [point.name for point in failpoints.REGISTRY.states()]
        untouched = {name: PointState(name, "", 0, 0, 0, {}) for name in declared}
        own = {point.name: point for point in super().states()}
        return [found for _, found in sorted((untouched | own).items())]

    def arm(self, name: str, action: str) -> None:
        """Arm a point that some module declares. Raises: ActionError."""
        if failpoints.REGISTRY.get(name) is None:
            raise failpoints.ActionError(failpoints.REGISTRY.no_such(name))
        self.point(name)
        super().arm(name, action)


POINTS: ContextVar[ProcessPoints] = ContextVar("points")
CALL_FAULTS: ContextVar[Faults] = ContextVar("call_faults")


@contextmanager
def install() -> Iterator[None]:
    """Give each simulated process its own failpoints and call faults, until the block ends."""
    outside, none = ProcessPoints(), FAULTS.of_process(failpoints.REGISTRY.rng, failpoints.REGISTRY.clock)
    failpoints.REGISTRY.select = lambda name: POINTS.get(outside).point(name)
    FAULTS.select = lambda: CALL_FAULTS.get(none)
    rules, FAULTS.rules = FAULTS.rules, ()
    try:
        yield
    finally:
        failpoints.REGISTRY.select = FAULTS.select = None
        FAULTS.rules = rules


def use_rules(faults: Iterable[Faults]) -> None:
    """Have calls look for faults if a process has any: the interpreter's own rules are those of all."""
    FAULTS.rules = tuple(rule for each in faults for rule in each.rules)
