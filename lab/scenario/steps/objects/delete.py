"""`delete`: delete objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from google.protobuf.message import Message

from nominee.lab.scenario.acting.base import DONE, Action, Performed
from nominee.lab.scenario.acting.written_fields import target_of
from nominee.lab.scenario.conditions.object import DEFAULT_NAMESPACE
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.declared import Field, Kind, Selector, Text
from nominee.lab.scenario.fields.fragments import one_of
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import JsonObject
from nominee.machinery.api.objects import metadata_of
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
        stayed, gone = list[Message](), list[Message]()
        deleted = await stage.objects(kind, self.name, self.namespace, self.selector)
        for metadata in map(metadata_of, deleted):
            await stage.delete(
                kind, metadata.namespace, metadata.name, self.grace_period_seconds, self.propagation_policy
            )
        for before in deleted:
            metadata = metadata_of(before)
            now = await stage.current(kind, metadata.namespace, metadata.name)
            if now is None or metadata_of(now).uid != metadata.uid:
                gone.append(before)
            else:
                stayed.append(now)
        await stage.until_seen(*stayed, gone=gone)
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
