"""`cordon`: make a node unschedulable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed
from nominee.lab.scenario.fields.fragments import TEXT, Fragment, mapping
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser
from nominee.machinery.api import kinds
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(Action):
    """Make a node unschedulable."""

    verb: ClassVar[str] = "cordon"
    row: ClassVar[str] = "`node`: make it unschedulable"

    node: str

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the field."""
        return mapping("Make a node unschedulable.", {"node": TEXT}, required=["node"])

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that makes a node unschedulable."""
        return cls(node=value["node"])

    def describe(self) -> str:
        """Return the action as a sentence."""
        return f"cordon node {self.node}"

    async def perform(self, stage: Stage) -> Performed:
        """Patch the node."""
        await set_unschedulable(stage, self.node, is_unschedulable=True)
        return DONE


async def set_unschedulable(stage: Stage, node: str, *, is_unschedulable: bool) -> None:
    """Make a node unschedulable, or schedulable."""
    patch = {"spec": {"unschedulable": is_unschedulable}}
    stored = await stage.call(lambda: stage.client.patch(kinds.NODE, node, "", patch))
    if stored is not None:
        await stage.until_seen(stored)
