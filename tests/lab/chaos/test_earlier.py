"""What held before a step looked for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from nominee.lab.chaos.earlier import Earlier
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.format.model import Scenario, Step
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.world import World
from nominee.lab.scenario.steps.expect import Expect, Mode
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.lab.scenario.steps.wait import Wait
from nominee.machinery.api import kinds


def pod(name: str) -> ObjectCondition:
    return ObjectCondition(kind="Pod", name=name)


@dataclass
class Holding:
    """A world in which these conditions hold."""

    conditions: list[Condition] = field(default_factory=list)

    def evaluate(self, condition: Condition) -> Observed:
        return Observed(holds=condition in self.conditions, text="seen")


def step(action: Apply | Wait | Expect, name: str = "") -> Step:
    return Step(action=action, verb=action.verb, line=1, name=name)


SCENARIO = Scenario(
    name="s",
    steps=(
        step(Apply(manifests=()), "first"),
        step(Wait(condition=pod("a"))),
        step(Expect(mode=Mode.EVENTUALLY, condition=pod("b"))),
        step(Expect(mode=Mode.NOW, condition=pod("c"))),
        step(Apply(manifests=()), "second"),
        step(Wait(condition=pod("a"))),
    ),
)


def test_a_state_that_has_passed_counts_until_the_next_change() -> None:
    world = Holding()
    earlier = Earlier(SCENARIO, cast("World", world))
    earlier.on_step("first")
    world.conditions = [pod("b"), pod("c")]
    earlier.on_change(kinds.POD, None, None)
    world.conditions = []
    earlier.on_change(kinds.POD, None, None)
    assert earlier.observation(pod("b")) is not None
    # `now` means now; and this one has not held.
    assert earlier.observation(pod("c")) is None
    assert earlier.observation(pod("a")) is None
    earlier.on_step("a step of the exploration")
    assert earlier.observation(pod("b")) is not None
    earlier.on_step("second")
    assert earlier.observation(pod("b")) is None


def test_nothing_counts_from_before_the_first_change() -> None:
    world = Holding([pod("a")])
    earlier = Earlier(SCENARIO, cast("World", world))
    earlier.on_change(kinds.POD, None, None)
    assert earlier.observation(pod("a")) is None


def test_a_condition_with_a_variable_does_not_count_before() -> None:
    steps = (step(Apply(manifests=()), "first"), step(Wait(condition=pod("${POD}"))))
    world = Holding([pod("${POD}")])
    earlier = Earlier(Scenario(name="s", steps=steps), cast("World", world))
    earlier.on_step("first")
    earlier.on_change(kinds.POD, None, None)
    assert earlier.observation(pod("${POD}")) is None
