"""`patch`: patch objects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from nominee.lab.scenario.acting.base import Action, Performed
from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.acting.written_fields import (
    change,
    client_entry,
    is_made_by_component,
    is_tracked,
    target_of,
    without_secrets,
)
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.fragments import FLAG, SELECTOR, TEXT, Fragment, mapping, one_of
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.fields.substitution import escaped
from nominee.lab.scenario.observing.base import ConditionParser, JsonObject
from nominee.machinery.patch.patch_type import PatchType
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch(Action):
    """Patch objects; `type` is strategic, merge, json or apply, `selector` names several objects."""

    verb: ClassVar[str] = "patch"
    row: ClassVar[str] = (
        "`kind`, `name` or `selector`, `namespace`, `patch`; `type` strategic, merge, json or apply (with "
        "`fieldManager`); `subresource` status, resize or scale"
    )
    may_be_rejected: ClassVar[bool] = True

    kind: str
    name: str = ""
    namespace: str = ""
    selector: str = ""
    subresource: str = ""
    type: str = "strategic"
    patch: Json
    field_manager: str = ""
    force: bool = False
    rejected: str = ""

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the field."""
        properties: dict[str, Fragment] = {
            "kind": TEXT,
            "name": TEXT,
            "namespace": TEXT,
            "selector": SELECTOR,
            "subresource": one_of("status", "resize", "scale"),
            "type": one_of("strategic", "merge", "json", "apply"),
            "patch": {"type": ["object", "array"]},
            "fieldManager": TEXT,
            "force": FLAG,
        }
        return mapping("Patch objects.", properties, required=["kind", "patch"])

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json, rejected: str) -> Action:
        """Return the step that patches objects."""
        with parser.checking((*path, "kind")):
            kind = names.kind(value["kind"])
            subresource = value.get("subresource", "")
            if subresource and subresource not in kind.subresources:
                known = ", ".join(sorted(kind.subresources))
                parser.fault((*path, "subresource"), f"{kind.kind} has no {subresource}; it has {known}")
        parser.one_target(path, value)
        patch_type = value.get("type", "strategic")
        if patch_type == "apply" and "fieldManager" not in value:
            parser.fault(path, "a patch of type apply needs a fieldManager")
        if (patch_type == "json") != isinstance(value["patch"], list):
            message = "a patch of type json is a list of operations, any other an object"
            parser.fault((*path, "patch"), message)
        return cls(
            kind=value["kind"],
            name=value.get("name", ""),
            namespace=value.get("namespace", "default"),
            selector=value.get("selector", ""),
            subresource=value.get("subresource", ""),
            type=patch_type,
            patch=value["patch"],
            field_manager=value.get("fieldManager", ""),
            force=value.get("force", False),
            rejected=rejected,
        )

    def describe(self) -> str:
        """Return the action as a sentence."""
        subresource = f" ({self.subresource})" if self.subresource else ""
        return f"patch {self.kind.lower()}/{self.name or self.selector}{subresource}"

    async def perform(self, stage: Stage) -> Performed:
        """Patch the objects, one after another."""
        kind = names.kind(self.kind)
        targets = await stage.targets(kind, self.name, self.namespace, self.selector)
        if not targets:
            raise StepFailedError(f"no {kind.kind} has the labels {self.selector}")
        patch_type = PatchType[self.type.upper()]
        for namespace, name in targets:
            if self.subresource == "scale":
                scale = partial(
                    stage.client.patch_scale, kind, name, namespace, self.patch, patch_type=patch_type
                )
                await stage.call(scale, self.rejected)
                continue
            patch = partial(
                stage.client.patch,
                kind,
                name,
                namespace,
                self.patch,
                patch_type=patch_type,
                subresource=self.subresource,
                field_manager=self.field_manager,
                force=self.force,
            )
            stored = await stage.call(patch, self.rejected)
            if stored is not None:
                await stage.until_seen(stored)
        return Performed(text="rejected" if self.rejected else "")

    @classmethod
    def of_change(cls, old: JsonObject, new: JsonObject) -> list[JsonObject]:
        """Return the recorded patch that made `new` of `old`; none if a component made it."""
        subresource = ""
        if is_tracked(new):
            entry = client_entry(old, new)
            if entry is None:
                return []
            subresource = str(entry.get("subresource", ""))
        elif new["kind"] != "Node" and is_made_by_component(new):
            return []
        patch = change(old, new)
        if not is_tracked(new) and new["kind"] == "Pod" and "spec" in patch:
            subresource = "resize"
        patch = {key: value for key, value in patch.items() if (key == "status") == (subresource == "status")}
        patch = {key: value for key, value in patch.items() if value not in ({}, None)}
        if not patch:
            return []
        step = target_of(new) | ({"subresource": subresource} if subresource else {})
        return [{cls.verb: {**step, "patch": escaped(without_secrets(new["kind"], patch))}}]
