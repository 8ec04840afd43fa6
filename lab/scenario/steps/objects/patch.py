"""`patch`: patch objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

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
from nominee.lab.scenario.conditions.object import DEFAULT_NAMESPACE
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.declared import Field, Flag, Kind, Selector, Text
from nominee.lab.scenario.fields.fragments import one_of
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.fields.substitution import escaped
from nominee.lab.scenario.observing.base import JsonObject
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import AnyKind
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
    about: ClassVar[str] = "Patch objects."

    kind: Kind
    name: Text = ""
    namespace: Text = DEFAULT_NAMESPACE
    selector: Selector = ""
    subresource: Annotated[str, Field(one_of("status", "resize", "scale"))] = ""
    type: Annotated[str, Field(one_of("strategic", "merge", "json", "apply"))] = "strategic"
    patch: Annotated[Json, Field({"type": ["object", "array"]})]
    field_manager: Text = ""
    force: Flag = False
    rejected: str = ""

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        with parser.checking((*path, "kind")):
            kind = names.kind(self.kind)
            if self.subresource and self.subresource not in kind.subresources:
                known = ", ".join(sorted(kind.subresources))
                message = f"{kind.kind} has no {self.subresource}; it has {known}"
                parser.fault((*path, "subresource"), message)
        parser.one_target(path, value)
        if self.type == "apply" and "fieldManager" not in value:
            parser.fault(path, "a patch of type apply needs a fieldManager")
        if (self.type == "json") != isinstance(self.patch, list):
            message = "a patch of type json is a list of operations, any other an object"
            parser.fault((*path, "patch"), message)

    def describe(self) -> str:
        subresource = f" ({self.subresource})" if self.subresource else ""
        return f"patch {self.kind.lower()}/{self.name or self.selector}{subresource}"

    async def perform(self, stage: Stage) -> Performed:
        """Patch the objects, one after another."""
        kind = names.kind(self.kind)
        targets = await stage.targets(kind, self.name, self.namespace, self.selector)
        if not targets:
            raise StepFailedError(f"no {kind.kind} has the labels {self.selector}")
        for namespace, name in targets:
            try:
                await self._perform_on(stage, kind, namespace, name)
            except StatusError as error:
                # One that was removed after it was listed has the labels no more.
                if self.name or not is_not_found(error):
                    raise
        return Performed(text="rejected" if self.rejected else "")

    async def _perform_on(self, stage: Stage, kind: AnyKind, namespace: str, name: str) -> None:
        """Patch an object, and wait until the watches show it. Raises: as `Stage.call`."""
        patch_type = PatchType[self.type.upper()]
        if self.subresource == "scale":
            scale = partial(
                stage.client.patch_scale, kind, name, namespace, self.patch, patch_type=patch_type
            )
            scaled = await stage.call(scale, self.rejected)
            stored = None if scaled is None else await stage.current(kind, namespace, name)
        else:
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
