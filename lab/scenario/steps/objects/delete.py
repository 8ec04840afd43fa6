"""`delete`: delete objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed
from nominee.lab.scenario.acting.written_fields import target_of
from nominee.lab.scenario.conditions.object import DEFAULT_NAMESPACE
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.declared import Field, Kind, Selector, Text
from nominee.lab.scenario.fields.fragments import one_of
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Action):
    """Delete objects by name or selector; an object that does not exist is no error."""

    verb: ClassVar[str] = "delete"
    row: ClassVar[str] = (
        "`kind`, `name` or `selector`, `namespace`, `gracePeriodSeconds`; `propagationPolicy` Background "
        "(the default), Foreground or Orphan"
    )
    about: ClassVar[str] = "Delete objects."

    kind: Kind
    name: Text = ""
    namespace: Text = DEFAULT_NAMESPACE
    selector: Selector = ""
    grace_period_seconds: Annotated[int | None, Field({"type": "integer", "minimum": 0})] = None
    propagation_policy: Annotated[str, Field(one_of("Background", "Foreground", "Orphan"))] = "Background"

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        parser.one_target(path, value)

    def describe(self) -> str:
        return f"delete {self.kind.lower()}/{self.name or self.selector}"

    async def perform(self, stage: Stage) -> Performed:
        """Delete the objects, one after another, and wait until the watches show it."""
        kind = names.kind(self.kind)
        targets = await stage.targets(kind, self.name, self.namespace, self.selector)
        world = stage.world
        before = [world.get(kind, name, space) for space, name in targets] if world.watches(kind) else []
        for namespace, name in targets:
            await stage.delete(kind, namespace, name, self.grace_period_seconds, self.propagation_policy)
        for each in filter(None, before):
            await stage.until_deletion_seen(each)
        return DONE

    @classmethod
    def of_object(cls, document: JsonObject, grace_seconds: int | None) -> JsonObject:
        """Return the recorded deletion of an object; `grace_seconds` if the object does not name them."""
        target = target_of(document)
        grace = document["metadata"].get("deletionGracePeriodSeconds", grace_seconds)
        usual = document.get("spec", {}).get("terminationGracePeriodSeconds")
        if document["kind"] == "Pod" and grace is not None and grace != usual:
            target = {**target, "gracePeriodSeconds": grace}
        return {cls.verb: target}
