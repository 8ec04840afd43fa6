"""`wait`: until a condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import WAIT_SECONDS, Action, Performed
from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.conditions.table import CONDITIONS
from nominee.lab.scenario.fields.fragments import Fragment, flag, mapping, seconds
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, ConditionParser, JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Action):
    """Wait until a condition holds; it prepares the next step and does not count as a check."""

    verb: ClassVar[str] = "wait"
    row: ClassVar[str] = (
        "until a condition holds; `seconds` is the limit (default 30), after which the scenario fails, or "
        "with `required: false` goes on. It prepares the next step, and is no check"
    )
    is_wait: ClassVar[bool] = True

    condition: Condition
    seconds: float = WAIT_SECONDS
    required: bool = True

    @classmethod
    def schema(cls) -> Fragment:
        conditions = {key: kind.schema() for key, kind in CONDITIONS.items()}
        required = flag("false: go on when the limit is over.")
        options = {"seconds": seconds("The limit (default 30)."), "required": required}
        return mapping("Wait until a condition holds.", conditions | options)

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that waits for a condition."""
        return cls(
            condition=parser.condition(path, value),
            seconds=float(value.get("seconds", WAIT_SECONDS)),
            required=value.get("required", True),
        )

    def describe(self) -> str:
        limit = "" if self.required else f", or for {self.seconds:g} s"
        return f"until {self.condition.describe()}{limit}"

    @property
    def conditions(self) -> Sequence[Condition]:
        """Return the condition."""
        return (self.condition,)

    @property
    def finds_object(self) -> bool:
        """Return whether the condition is about an object."""
        return self.required and isinstance(self.condition, ObjectCondition)

    async def perform(self, stage: Stage) -> Performed:
        """Wait."""
        try:
            observed = await stage.waiting.until(self.condition, self.seconds)
        except StepFailedError as error:
            if self.required:
                raise
            return Performed(text=str(error))
        return Performed(text=observed.text, found=observed.found)

    @classmethod
    def for_object(cls, target: JsonObject) -> JsonObject:
        """Return the recorded step that waits for an object."""
        return {cls.verb: {ObjectCondition.key: target}}
