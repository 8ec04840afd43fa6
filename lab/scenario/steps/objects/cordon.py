"""`cordon`: make a node unschedulable; `uncordon`: make it schedulable again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed
from nominee.lab.scenario.fields.declared import Text
from nominee.machinery.api import kinds

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(Action):
    """Make a node unschedulable."""

    verb: ClassVar[str] = "cordon"
    row: ClassVar[str] = "`node`: make it unschedulable"
    about: ClassVar[str] = "Make a node unschedulable."

    node: Text

    def describe(self) -> str:
        return f"cordon node {self.node}"

    async def perform(self, stage: Stage) -> Performed:
        """Patch the node."""
        await set_unschedulable(stage, self.node, is_unschedulable=True)
        return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(Action):
    """Make a node schedulable again."""

    verb: ClassVar[str] = "uncordon"
    row: ClassVar[str] = "`node`: make it schedulable again"
    about: ClassVar[str] = "Make a node schedulable."

    node: Text

    def describe(self) -> str:
        return f"uncordon node {self.node}"

    async def perform(self, stage: Stage) -> Performed:
        """Patch the node."""
        await set_unschedulable(stage, self.node, is_unschedulable=False)
        return DONE


async def set_unschedulable(stage: Stage, node: str, *, is_unschedulable: bool) -> None:
    """Make a node unschedulable, or schedulable."""
    patch = {"spec": {"unschedulable": is_unschedulable}}
    stored = await stage.call(lambda: stage.client.patch(kinds.NODE, node, "", patch))
    if stored is not None:
        await stage.until_seen(stored)
