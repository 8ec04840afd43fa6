"""`failpoint`: arm a failpoint of a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed, Phase, ProcessView, Undoing
from nominee.lab.scenario.fields.declared import ServingComponent, Text
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFailpoint(Action):
    """Arm a failpoint of a process, or disarm it with `off`."""

    verb: ClassVar[str] = "failpoint"
    row: ClassVar[str] = "`component`, `name`, `action` ([failpoints.md](failpoints.md))"
    undone_in: ClassVar[Phase | None] = Phase.FAILPOINTS
    about: ClassVar[str] = "Arm a failpoint; action off disarms it."

    component: ServingComponent
    name: Text
    action: Text

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        parser.failpoint_name((*path, "name"), self.component, self.name, self.action)

    def describe(self) -> str:
        return f"failpoint {self.name} is {self.action}"

    async def perform(self, stage: Stage) -> Performed:
        """Arm the failpoint."""
        await stage.until_started(self.component)
        await stage.cluster.arm_failpoint(self.component, self.name, self.action)
        return DONE

    async def undo(self, undoing: Undoing) -> None:
        """Disarm the failpoint, unless its process does not run when a scenario begins."""
        is_first = undoing.is_first(self.verb, self.component, self.name)
        if is_first and not undoing.cluster.component(self.component).stopped:
            await undoing.stage.cluster.arm_failpoint(self.component, self.name, "off")

    @classmethod
    def record(cls, before: ProcessView, now: ProcessView) -> list[JsonObject]:
        """Return the failpoints that were armed or disarmed."""
        before = now.since(before)
        steps: list[JsonObject] = []
        for point in sorted({*before.failpoints, *now.failpoints}):
            action = now.failpoints.get(point, "off")
            if action != before.failpoints.get(point, "off"):
                steps.append({cls.verb: {"component": now.name, "name": point, "action": action}})
        return steps
