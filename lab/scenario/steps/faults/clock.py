"""`clock`: shift the wall clock of a process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed, Phase, Undoing
from nominee.lab.scenario.fields.fragments import COMPONENT, Fragment, mapping
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftClock(Action):
    """Shift the wall clock of a process by seconds, relative to the machine's."""

    verb: ClassVar[str] = "clock"
    row: ClassVar[str] = "`component`, `offsetSeconds`: shift its wall clock"
    undone_in: ClassVar[Phase | None] = Phase.FAULTS

    component: str
    offset_seconds: float

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the field."""
        properties: dict[str, Fragment] = {"component": COMPONENT, "offsetSeconds": {"type": "number"}}
        return mapping("Shift the wall clock of a component.", properties, required=list(properties))

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that shifts a clock."""
        component = parser.component((*path, "component"), value["component"], serves=True)
        return cls(component=component, offset_seconds=float(value["offsetSeconds"]))

    def describe(self) -> str:
        """Return the action as a sentence."""
        return f"the clock of {self.component} is shifted by {self.offset_seconds:+g} s"

    async def perform(self, stage: Stage) -> Performed:
        """Shift the clock."""
        await stage.cluster.shift_clock(self.component, self.offset_seconds)
        return DONE

    async def undo(self, undoing: Undoing) -> None:
        """Set the clock right."""
        await undoing.stage.cluster.shift_clock(self.component, 0.0)
