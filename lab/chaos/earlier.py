"""Remember conditions that held before a step looked for them: a late step may have missed them.

A disturbed step takes longer; the next one, which looks for a state that does not last, then begins after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from nominee.lab.scenario.fields.substitution import used
from nominee.lab.scenario.format.model import Scenario, Step
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.world import World
from nominee.lab.scenario.steps.expect import Expect, Mode
from nominee.lab.scenario.steps.wait import Wait
from nominee.machinery.api.kinds import AnyKind


class Earlier:
    """The conditions on objects of the steps from one change of the scenario to the next, and when they held.

    Listen with `on_change`, call `on_step` with the text of each step, and ask with `observation`.
    """

    def __init__(self, scenario: Scenario, world: World) -> None:
        self._world = world
        self._blocks = _blocks(scenario.steps)
        self._waiting: list[Condition] = []
        self._new: list[Condition] = []
        """Those of `_waiting` that were not evaluated yet."""
        self._found: list[tuple[Condition, Observed]] = []

    def on_step(self, text: str) -> None:
        """Begin with the conditions after a step that changes something."""
        if self._blocks and text == self._blocks[0][0]:
            self._waiting = self._blocks.pop(0)[1]
            self._new = list(self._waiting)
            self._found = []

    def on_change(self, kind: AnyKind, old: Message | None, new: Message | None) -> None:
        """Note the conditions that hold now for the first time."""
        changed = new if new is not None else old
        due = [each for each in self._waiting if changed is None or each.concerns(kind, changed)]
        due, self._new = due + [each for each in self._new if each not in due], []
        for condition in due:
            observed = self._world.evaluate(condition)
            if observed.holds:
                self._waiting.remove(condition)
                self._found.append((condition, observed))

    def observation(self, condition: Condition) -> Observed | None:
        """Return how a condition held since the last change of the scenario, None if it did not."""
        return next((observed for other, observed in self._found if other == condition), None)


def _blocks(steps: Sequence[Step]) -> list[tuple[str, list[Condition]]]:
    """Return the text of each step that is no check and no wait, and the conditions that follow it.

    Without those that name a variable: it has no value yet.
    """
    found: list[tuple[str, list[Condition]]] = []
    for step in steps:
        match step.action:
            case Wait(condition=condition) | Expect(mode=Mode.EVENTUALLY, condition=condition):
                if found and condition.is_about_objects and not used(repr(condition)):
                    found[-1][1].append(condition)
            case Expect():
                pass
            case _:
                found.append((step.name or step.action.describe(), []))
    return found
