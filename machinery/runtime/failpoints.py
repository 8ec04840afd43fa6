"""Named steps at which a process can be made to die, stall or err (actions as in etcd's gofail).

    BEFORE = failpoints.declare("scheduler.bind.before", "no Bind plugin was called")     # at import
    await BEFORE.hit(pod="ns/name")                                                       # where it happens

An unarmed point costs a few attribute tests. `failpoint_registry` has the actions.
"""

from __future__ import annotations

from nominee.machinery.runtime import runtime
from nominee.machinery.runtime.faults.failpoint_registry import ActionError as ActionError
from nominee.machinery.runtime.faults.failpoint_registry import FailpointError as FailpointError
from nominee.machinery.runtime.faults.failpoint_registry import Point
from nominee.machinery.runtime.faults.failpoint_registry import PointState as PointState
from nominee.machinery.runtime.faults.failpoint_registry import Registry as Registry
from nominee.machinery.runtime.faults.failpoint_registry import Term as Term
from nominee.machinery.runtime.faults.failpoint_registry import parse as parse
from nominee.machinery.runtime.faults.failpoint_registry import parse_list as parse_list
from nominee.machinery.runtime.runtime import RUNTIME

REGISTRY = Registry()
"""The points of a process that has the interpreter for itself; in a simulation, the names of all."""
arm = REGISTRY.arm
arm_early = REGISTRY.arm_early
states = REGISTRY.states


class Failpoint:
    """A step that a module declares. Each process that passes it has a point of its own."""

    __slots__ = ("_point", "name")

    def __init__(self, point: Point) -> None:
        self._point = point
        self.name = point.name

    async def hit(self, **context: object) -> None:
        """Pass this step; `context` names the object (`pod="ns/name"`) for the log and the list.

        Raises FailpointError or StatusError when armed to; may not return at all.
        """
        point = self._of_task() if runtime.simulated else self._point
        point.hits += 1
        chain = point.chain
        if chain is not None:
            await point.act(chain, context)

    def _of_task(self) -> Point:
        """Return the point of the running task's process."""
        found = RUNTIME.get()
        return self._point if found is None else found.failpoints.point(self.name)


def declare(name: str, sentence: str) -> Failpoint:
    """Return a new failpoint; a name is declared once.

    `sentence` is true when the point is hit; `nominee failpoint` and docs/failpoints.md show it. They read it
    in the sources (`localcluster/declared_failpoints.py`), so both arguments are literals.
    """
    assert sentence, f"{name} has no sentence"
    return Failpoint(REGISTRY.declare(name))
