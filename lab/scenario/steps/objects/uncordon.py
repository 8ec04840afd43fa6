"""`uncordon`: make a node schedulable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed
from nominee.lab.scenario.fields.fragments import TEXT, Fragment, mapping
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser
from nominee.lab.scenario.steps.objects.cordon import set_unschedulable
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(Action):
    """Make a node schedulable again."""

    verb: ClassVar[str] = "uncordon"
    row: ClassVar[str] = "`node`: make it schedulable again"

    node: str

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the field."""
        return mapping("Make a node schedulable.", {"node": TEXT}, required=["node"])

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that makes a node schedulable."""
        return cls(node=value["node"])

    def describe(self) -> str:
        """Return the action as a sentence."""
        return f"uncordon node {self.node}"

    async def perform(self, stage: Stage) -> Performed:
        """Patch the node."""
        await set_unschedulable(stage, self.node, is_unschedulable=False)
        return DONE
