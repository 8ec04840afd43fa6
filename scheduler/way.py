"""A pod's way through one attempt, as a table. Who takes a step that is not in it has a bug.

The table is also the documentation: `diagram` draws it for docs/design/004-scheduler.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Step(StrEnum):
    """Where an attempt is."""

    TRYING = "trying"  # popped; plugins look for a node
    RESERVED = "reserved"  # assumed on a node, in memory only
    NOMINATED = "nominated"  # and status.nominatedNodeName says so (or could not be written)
    WAITING = "waiting on Permit"
    PRE_BINDING = "in PreBind"
    BINDING = "binding"
    BOUND = "bound"
    BACK = "back in the queue"


TRANSITIONS: Final[Mapping[Step, tuple[Step, ...]]] = {
    Step.TRYING: (Step.RESERVED, Step.BACK),
    Step.RESERVED: (Step.NOMINATED, Step.WAITING, Step.PRE_BINDING, Step.BINDING, Step.BACK),
    Step.NOMINATED: (Step.WAITING, Step.PRE_BINDING, Step.BACK),
    Step.WAITING: (Step.PRE_BINDING, Step.BINDING, Step.BACK),
    Step.PRE_BINDING: (Step.BINDING, Step.BACK),
    Step.BINDING: (Step.BOUND, Step.BACK),
    Step.BOUND: (),
    Step.BACK: (),
}


class UnknownTransitionError(Exception):
    """A step that the table does not allow; the text tells the attempt's story."""


class Way:
    """One attempt's way so far. Times are monotonic seconds."""

    __slots__ = ("_name", "_steps")

    def __init__(self, name: str, at: float) -> None:
        self._name = name
        self._steps: list[tuple[float, Step]] = [(at, Step.TRYING)]

    @property
    def step(self) -> Step:
        return self._steps[-1][1]

    def to(self, step: Step, at: float) -> None:
        """Take a step; UnknownTransitionError."""
        if step not in TRANSITIONS[self.step]:
            raise UnknownTransitionError(f"{self._name}: {step} does not follow; {self.story()}")
        self._steps.append((at, step))

    def story(self) -> str:
        """`trying, reserved +0.3ms, binding +0.5ms`: milliseconds since the beginning."""
        begin = self._steps[0][0]
        later = (f"{step} +{(at - begin) * 1000:.1f}ms" for at, step in self._steps[1:])
        return ", ".join([str(self._steps[0][1]), *later])


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    ids = {step: step.name.lower() for step in Step}
    lines = [
        "stateDiagram-v2",
        *(f"    {ids[step]} : {step}" for step in Step),
        f"    [*] --> {ids[Step.TRYING]}",
    ]
    for step, following in TRANSITIONS.items():
        lines += [f"    {ids[step]} --> {ids[after]}" for after in following]
        if not following:
            lines.append(f"    {ids[step]} --> [*]")
    return "\n".join(lines)
