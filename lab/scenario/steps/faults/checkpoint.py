"""`checkpoint`: damage the checkpoint file of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed
from nominee.lab.scenario.fields.declared import Field, Text
from nominee.lab.scenario.fields.fragments import one_of

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageCheckpoint(Action):
    """Damage the checkpoint file of a node whose kubelet does not run: `corrupt`, `truncate` or `delete`."""

    verb: ClassVar[str] = "checkpoint"
    row: ClassVar[str] = (
        "`node`, `damage`: corrupt, truncate or delete its checkpoint file while its kubelet is down"
    )
    about: ClassVar[str] = "Damage the checkpoint file of a node; its kubelet must be down."

    node: Text
    how: Annotated[str, Field(one_of("corrupt", "truncate", "delete"), key="damage")]

    def describe(self) -> str:
        return f"{self.how} the checkpoint of {self.node}"

    async def perform(self, stage: Stage) -> Performed:
        """Damage the file."""
        await stage.cluster.damage_checkpoint(self.node, self.how)
        return DONE
