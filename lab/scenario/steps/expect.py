"""`expect`: a check of a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import WAIT_SECONDS, Action, Performed
from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields.fragments import CONDITION, Fragment, mapping, seconds
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, ConditionParser, JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


class Mode(Enum):
    """The times at which the condition of an expectation must hold."""

    NOW = "now"
    EVENTUALLY = "eventually"
    ALWAYS = "always"
    NEVER = "never"


class WhenDisturbed(Enum):
    """The strictness of a check in an exploration (docs/chaos.md).

    STRICT: as it is written. RELAXED: `now` and `always` must hold eventually, `never` is left out. BY_CASE:
    `always` and `never` are strict where the perturbations do not touch the condition.
    """

    BY_CASE = "byCase"
    STRICT = "strict"
    RELAXED = "relaxed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect(Action):
    """A check. `seconds` is the limit of EVENTUALLY and the duration of ALWAYS and NEVER."""

    verb: ClassVar[str] = "expect"
    row: ClassVar[str] = (
        "a check: `eventually` (within `seconds`, default 30), `now`, `always` or `never` (for `seconds`) "
        "a condition"
    )
    is_check: ClassVar[bool] = True

    mode: Mode
    condition: Condition
    seconds: float = WAIT_SECONDS
    when_disturbed: WhenDisturbed = WhenDisturbed.BY_CASE

    @classmethod
    def schema(cls) -> Fragment:
        limit = "The limit of eventually (default 30); how long always and never must hold."
        properties = {mode.value: CONDITION for mode in Mode} | {
            "seconds": seconds(limit),
            "whenDisturbed": {
                "enum": [each.value for each in WhenDisturbed],
                "description": "How the check counts in explorations (docs/chaos.md; default byCase).",
            },
        }
        return mapping("A check: exactly one of now, eventually, always, never.", properties)

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return a check."""
        modes = [mode.value for mode in Mode if mode.value in value]
        if len(modes) != 1:
            parser.fault(path, f"give exactly one of {', '.join(mode.value for mode in Mode)}")
            return cls(mode=Mode.NOW, condition=ObjectCondition(kind="Pod"))
        mode = Mode(modes[0])
        if mode in (Mode.ALWAYS, Mode.NEVER) and "seconds" not in value:
            parser.fault(path, f"{mode.value} needs seconds")
        if mode is Mode.NOW and "seconds" in value:
            parser.fault((*path, "seconds"), "now takes no time; write eventually")
        condition = parser.condition((*path, mode.value), value[mode.value])
        return cls(
            mode=mode,
            condition=condition,
            seconds=float(value.get("seconds", WAIT_SECONDS)),
            when_disturbed=WhenDisturbed(value.get("whenDisturbed", WhenDisturbed.BY_CASE.value)),
        )

    def describe(self) -> str:
        condition = self.condition.describe()
        if self.mode is Mode.NOW:
            return condition
        if self.mode is Mode.EVENTUALLY:
            return f"eventually {condition}"
        return f"for {self.seconds:g} s {self.mode.value} {condition}"

    @property
    def conditions(self) -> Sequence[Condition]:
        """Return the condition."""
        return (self.condition,)

    @property
    def finds_object(self) -> bool:
        """Return whether the condition is about an object."""
        return isinstance(self.condition, ObjectCondition)

    async def perform(self, stage: Stage) -> Performed:
        """Check the condition."""
        if self.mode is Mode.NOW:
            observed = await stage.waiting.now(self.condition)
            if not observed.holds:
                raise StepFailedError(f"observed: {observed.text}")
        elif self.mode is Mode.EVENTUALLY:
            observed = await stage.waiting.until(self.condition, self.seconds)
        else:
            must_hold = self.mode is Mode.ALWAYS
            observed = await stage.waiting.throughout(self.condition, self.seconds, must_hold=must_hold)
        return Performed(text=observed.text, found=observed.found)

    @classmethod
    def of_object(cls, target: JsonObject) -> JsonObject:
        """Return the recorded step that expects an object."""
        return {cls.verb: {Mode.EVENTUALLY.value: {ObjectCondition.key: target}}}
