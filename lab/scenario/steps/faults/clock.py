"""`clock`: shift the wall clock of a process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed, Phase, Undoing
from nominee.lab.scenario.fields.declared import Field, ServingComponent, number

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftClock(Action):
    """Shift the wall clock of a process by seconds, relative to the machine's."""

    verb: ClassVar[str] = "clock"
    row: ClassVar[str] = "`component`, `offsetSeconds`: shift its wall clock"
    undone_in: ClassVar[Phase | None] = Phase.FAULTS
    about: ClassVar[str] = "Shift the wall clock of a component."

    component: ServingComponent
    offset_seconds: Annotated[float, Field({"type": "number"}, number)]

    def describe(self) -> str:
        return f"the clock of {self.component} is shifted by {self.offset_seconds:+g} s"

    async def perform(self, stage: Stage) -> Performed:
        """Shift the clock."""
        await stage.until_started(self.component)
        await stage.cluster.shift_clock(self.component, self.offset_seconds)
        return DONE

    async def undo(self, undoing: Undoing) -> None:
        """Set the clock right."""
        await undoing.stage.cluster.shift_clock(self.component, 0.0)
