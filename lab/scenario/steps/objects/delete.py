"""`delete`: delete objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import DONE, Action, Performed
from nominee.lab.scenario.acting.written_fields import target_of
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.fragments import SELECTOR, TEXT, Fragment, mapping
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import ConditionParser, JsonObject
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Action):
    """Delete objects by name or selector; an object that does not exist is no error."""

    verb: ClassVar[str] = "delete"
    row: ClassVar[str] = "`kind`, `name` or `selector`, `namespace`, `gracePeriodSeconds`"

    kind: str
    name: str = ""
    namespace: str = ""
    selector: str = ""
    grace_period_seconds: int | None = None

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the field."""
        properties: dict[str, Fragment] = {
            "kind": TEXT,
            "name": TEXT,
            "namespace": TEXT,
            "selector": SELECTOR,
            "gracePeriodSeconds": {"type": "integer", "minimum": 0},
        }
        return mapping("Delete objects.", properties, required=["kind"])

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that deletes objects."""
        with parser.checking((*path, "kind")):
            names.kind(value["kind"])
        parser.one_target(path, value)
        return cls(
            kind=value["kind"],
            name=value.get("name", ""),
            namespace=value.get("namespace", "default"),
            selector=value.get("selector", ""),
            grace_period_seconds=value.get("gracePeriodSeconds"),
        )

    def describe(self) -> str:
        """Return the action as a sentence."""
        return f"delete {self.kind.lower()}/{self.name or self.selector}"

    async def perform(self, stage: Stage) -> Performed:
        """Delete the objects, one after another."""
        kind = names.kind(self.kind)
        for namespace, name in await stage.targets(kind, self.name, self.namespace, self.selector):
            await stage.delete(kind, namespace, name, self.grace_period_seconds)
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
