"""`failpoint`: arm a failpoint of a process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed, Phase, Undoing
from nominee.lab.scenario.acting.process_view import ProcessView
from nominee.lab.scenario.fields.fragments import COMPONENT, TEXT, Fragment, mapping
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser, JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFailpoint(Action):
    """Arm a failpoint of a process, or disarm it with `off`."""

    verb: ClassVar[str] = "failpoint"
    row: ClassVar[str] = "`component`, `name`, `action` ([failpoints.md](failpoints.md))"
    undone_in: ClassVar[Phase | None] = Phase.FAILPOINTS

    component: str
    name: str
    action: str

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the field."""
        properties = {"component": COMPONENT, "name": TEXT, "action": TEXT}
        return mapping("Arm a failpoint; action off disarms it.", properties, required=list(properties))

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that arms a failpoint."""
        component = parser.component((*path, "component"), value["component"], serves=True)
        parser.failpoint_name((*path, "name"), component, value["name"], value["action"])
        return cls(component=component, name=value["name"], action=value["action"])

    def describe(self) -> str:
        """Return the action as a sentence."""
        return f"failpoint {self.name} is {self.action}"

    async def perform(self, stage: Stage) -> Performed:
        """Arm the failpoint."""
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
