"""`checkpoint`: damage the checkpoint file of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed
from nominee.lab.scenario.fields.fragments import TEXT, Fragment, mapping, one_of
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageCheckpoint(Action):
    """Damage the checkpoint file of a node whose kubelet does not run: `corrupt`, `truncate` or `delete`."""

    verb: ClassVar[str] = "checkpoint"
    row: ClassVar[str] = (
        "`node`, `damage`: corrupt, truncate or delete its checkpoint file while its kubelet is down"
    )

    node: str
    how: str

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the field."""
        return mapping(
            "Damage the checkpoint file of a node; its kubelet must be down.",
            {"node": TEXT, "damage": one_of("corrupt", "truncate", "delete")},
            required=["node", "damage"],
        )

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that damages a checkpoint."""
        return cls(node=value["node"], how=value["damage"])

    def describe(self) -> str:
        """Return the action as a sentence."""
        return f"{self.how} the checkpoint of {self.node}"

    async def perform(self, stage: Stage) -> Performed:
        """Damage the file."""
        await stage.cluster.damage_checkpoint(self.node, self.how)
        return DONE
