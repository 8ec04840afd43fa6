"""`nodeGroup`: create or delete instances of a node group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

from nominee.lab.scenario.acting.base import (
    DONE,
    WAIT_SECONDS,
    Action,
    Performed,
    Phase,
    Undoing,
)
from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.fields.declared import Field, Seconds
from nominee.lab.scenario.fields.fragments import TEXT, flag
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage

GROUP_LABEL = "nominee.dev/node-group"
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeGroup(Action):
    """Create instances of a node group of the cloud and wait for their nodes, or delete all of them."""

    verb: ClassVar[str] = "nodeGroup"
    row: ClassVar[str] = (
        "`name`, and `increase: N` or `delete: true`; waits for the nodes (`seconds`) unless `wait: false`"
    )
    undone_in: ClassVar[Phase | None] = Phase.NODES
    about: ClassVar[str] = "Create or delete instances of a node group."

    group: Annotated[str, Field(TEXT, key="name")]
    increase: Annotated[int, Field({"type": "integer", "minimum": 1})] = 0
    delete: Annotated[bool, Field(flag("Delete all instances."))] = False
    wait: Annotated[bool, Field(flag("Wait until the nodes are ready, or gone (default true)."))] = True
    seconds: Seconds = WAIT_SECONDS

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        if ("increase" in value) == self.delete:
            parser.fault(path, "give increase, or delete: true")
        groups = {group["name"] for group in parser.cluster.node_groups}
        if self.group not in groups:
            known = ", ".join(sorted(groups)) or "none"
            message = f"no node group {self.group!r} in spec.cluster.nodeGroups: {known}"
            parser.fault((*path, "name"), message)

    def describe(self) -> str:
        if self.delete:
            return f"the nodes of group {self.group} are deleted"
        return f"{self.increase} node(s) of group {self.group} are created"

    async def perform(self, stage: Stage) -> Performed:
        """Create or delete instances, and wait for their nodes."""
        before = self._nodes(stage)
        known = {node.metadata.uid for node in before}
        if self.delete:
            if before:
                await stage.cluster.delete_nodes(self.group, [node.metadata.name for node in before])
            await self._until(
                stage, lambda: not any(n.metadata.uid in known for n in self._nodes(stage)), "gone"
            )
            return DONE
        await stage.cluster.increase_node_group(self.group, self.increase)
        wanted = len(before) + self.increase
        await self._until(stage, lambda: sum(map(_is_usable, self._nodes(stage))) >= wanted, "ready")
        added = [node.metadata.name for node in self._nodes(stage) if node.metadata.uid not in known]
        return Performed(text=", ".join(added))

    def _nodes(self, stage: Stage) -> list[core.Node]:
        """Return the nodes of the group, by name."""
        nodes = cast("list[core.Node]", stage.world.messages(kinds.NODE))
        found = [node for node in nodes if node.metadata.labels.get(GROUP_LABEL) == self.group]
        return sorted(found, key=lambda node: node.metadata.name)

    async def _until(self, stage: Stage, holds: Callable[[], bool], what: str) -> None:
        deadline = stage.clock.monotonic() + self.seconds
        while self.wait and not holds():
            if stage.clock.monotonic() >= deadline:
                nodes = ", ".join(node.metadata.name for node in self._nodes(stage)) or "no node"
                raise StepFailedError(f"nodes are not {what} within {self.seconds:g} s: {nodes}")
            await stage.clock.sleep(_POLL_SECONDS)

    async def undo(self, undoing: Undoing) -> None:
        """Delete all nodes of the groups of all steps, by name."""
        if not undoing.is_first(self.verb):
            return
        groups = {action.group for action in undoing.actions if isinstance(action, ResizeGroup)}
        for group in sorted(groups):
            await ResizeGroup(group=group, delete=True).perform(undoing.stage)


def _is_usable(node: core.Node) -> bool:
    return condition_is(node.status.conditions, "Ready") and not node.spec.taints
