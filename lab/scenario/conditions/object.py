"""`object`: objects by name or selector, with their properties."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import ClassVar, Final

from google.protobuf.message import Message

from nominee.lab.history.revision import subject_of
from nominee.lab.scenario.fields import names, paths
from nominee.lab.scenario.fields.comparison import (
    AT_LEAST_ONE,
    NONE,
    Comparison,
    counted,
    described_paths,
    matches,
    shown,
)
from nominee.lab.scenario.fields.fragments import COUNT, JSON_PATH, SELECTOR, Fragment, flag, mapping, text
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, ConditionParser, JsonObject, Objects, Observed
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.wire.values.scalars import Json

DEFAULT_NAMESPACE: Final = "default"
_SHOWN_MAX = 5
_STATUS_CONDITION = re.compile(r"!\w+|\w+=(?:True|False|Unknown)(?:/\w+)?|\$\{.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCondition(Condition):
    """Objects of a kind, by name or selector, of which `count` have all the stated properties.

    `conditions` are texts `TYPE=STATUS`, `TYPE=STATUS/REASON` or `!TYPE` (there is no such condition).
    `count` None means at least one.
    """

    key: ClassVar[str] = "object"
    row: ClassVar[str] = (
        "`kind`, `name` or `selector`, `namespace` (default `default`); `condition` (`PodScheduled=False`, "
        "`DisruptionTarget=True/PreemptionByScheduler`, `!PodScheduled`: no such condition), `jsonPath`; "
        "`count` (default at least 1) or `exists: false`"
    )

    kind: str
    name: str = ""
    namespace: str = ""
    selector: str = ""
    conditions: tuple[str, ...] = ()
    json_path: Mapping[str, Comparison] = field(default_factory=dict)
    count: Comparison | None = None

    @classmethod
    def schema(cls) -> Fragment:
        return {"$ref": "#/$defs/objectCondition"}

    @classmethod
    def definitions(cls) -> Mapping[str, Fragment]:
        condition = {
            "description": "TYPE=STATUS, TYPE=STATUS/REASON, or !TYPE: there is no such condition. "
            "One or a list.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
        }
        properties: dict[str, Fragment] = {
            "kind": text("Kind, plural or short name: Pod, pods, po, replicasets.apps."),
            "name": text("The object's name."),
            "namespace": text("The namespace; `default` if it is left out."),
            "selector": SELECTOR,
            "condition": condition,
            "jsonPath": JSON_PATH,
            "exists": flag("false: no object has these properties."),
            "count": COUNT,
        }
        found = mapping("Objects that have all of the stated properties.", properties, required=["kind"])
        return {"objectCondition": found}

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Mapping[str, Json]) -> Condition:
        kind, namespaced = value["kind"], True
        with parser.checking((*path, "kind")):
            namespaced = names.kind(kind).namespaced
        parser.one_target(path, value, may_be_all=True)
        conditions = value.get("condition", ())
        conditions = (conditions,) if isinstance(conditions, str) else tuple(conditions)
        for each in conditions:
            if not _STATUS_CONDITION.fullmatch(each):
                parser.fault(
                    (*path, "condition"),
                    f"{each!r} is not TYPE=STATUS, TYPE=STATUS/REASON or !TYPE, as PodScheduled=True",
                )
        count = parser.comparison((*path, "count"), value["count"]) if "count" in value else None
        if "exists" in value:
            if count is not None:
                parser.fault((*path, "exists"), "give exists or count, not both")
            count = AT_LEAST_ONE if value["exists"] else NONE
        return cls(
            kind=kind,
            name=value.get("name", ""),
            namespace=value.get("namespace", DEFAULT_NAMESPACE) if namespaced else "",
            selector=value.get("selector", ""),
            conditions=conditions,
            json_path=parser.json_path((*path, "jsonPath"), value.get("jsonPath", {})),
            count=count,
        )

    def describe(self) -> str:
        subject = self.kind.lower()
        if self.name:
            subject += f" {self.name}"
        elif self.selector:
            subject += f" with {self.selector}"
        parts = [each if not each.startswith("!") else f"no {each[1:]}" for each in self.conditions]
        if self.json_path:
            parts.append(described_paths(self.json_path))
        properties = f" has {', '.join(parts)}" if parts else " exists"
        return f"{subject}{properties}{counted(self.count)}"

    @property
    def is_about_objects(self) -> bool:
        return True

    def watched(self) -> Sequence[AnyKind]:
        return [names.kind(self.kind)]

    def concerns(self, kind: AnyKind, obj: Message) -> bool:
        # Labels may have changed: with a selector every object of the kind matters.
        return kind is names.kind(self.kind) and self.name in ("", metadata_of(obj).name)

    def evaluate(self, objects: Objects) -> Observed:
        """Evaluate the condition on the objects that its name or selector chooses."""
        observed = self.evaluated(chosen := self._chosen(objects))
        gone = [] if chosen or observed.holds else self._deletions(objects)
        if not gone:
            return observed
        last, seconds = gone[-1]
        subject = "it" if self.name else f"the last one, {metadata_of(last).name},"
        return replace(observed, text=f"{subject} existed until {seconds:.1f} s")

    def subjects(self, objects: Objects) -> list[str]:
        kind = names.kind(self.kind)
        if self.name:
            return [subject_of(kind, self.namespace, self.name)]
        found = [each for each in objects.messages(kind) if self.chooses(kind, each)]
        found += [last for last, _ in self._deletions(objects)]
        named = ((metadata.namespace, metadata.name) for metadata in map(metadata_of, found))
        return [subject_of(kind, namespace, name) for namespace, name in named]

    def _deletions(self, objects: Objects) -> list[tuple[Message, float]]:
        kind = names.kind(self.kind)
        return [found for found in objects.deletions(kind) if self.chooses(kind, found[0])]

    def chooses(self, kind: AnyKind, obj: Message) -> bool:
        """Return whether an object has the kind, name, namespace and labels; not whether it has the rest."""
        metadata = metadata_of(obj)
        return (
            kind is names.kind(self.kind)
            and (not kind.namespaced or self.namespace in ("", metadata.namespace))
            and self.name in ("", metadata.name)
            and (not self.selector or _selector(self.selector).matches(metadata.labels))
        )

    def _chosen(self, objects: Objects) -> list[JsonObject]:
        kind = names.kind(self.kind)
        namespace = self.namespace if kind.namespaced else ""
        if self.name:
            found = objects.get(kind, self.name, namespace)
            return [objects.json(kind, found)] if found is not None else []
        documents = [objects.json(kind, each) for each in objects.messages(kind, namespace)]
        if self.selector:
            selector = _selector(self.selector)
            documents = [each for each in documents if selector.matches(each["metadata"].get("labels", {}))]
        return sorted(
            documents, key=lambda each: (each["metadata"].get("namespace", ""), each["metadata"]["name"])
        )

    def evaluated(self, objects: Sequence[JsonObject]) -> Observed:
        """Evaluate the condition on these objects."""
        found = [each for each in objects if not _unmet(self, each)]
        holds = matches(self.count or AT_LEAST_ONE, [len(found)])
        first = found[0] if found else None
        if not objects:
            return Observed(holds=holds, text="there is no such object")
        if not self.conditions and not self.json_path:
            said = f"{len(objects)} exist" if self.count is not None else "it exists"
            return Observed(holds=holds, text=said, found=first)
        lines = [f"{name_of(each)}: {_state(self, each)}" for each in objects[:_SHOWN_MAX]]
        if len(objects) > _SHOWN_MAX:
            lines.append(f"... {len(objects)} objects, of which {len(found)} match")
        return Observed(holds=holds, text="; ".join(lines), found=first)


@cache
def _selector(text: str) -> LabelSelector:
    return LabelSelector.parse(text)


def _unmet(condition: ObjectCondition, document: JsonObject) -> list[str]:
    """Return the properties that an object does not have, with what it has instead."""
    problems = []
    for each in condition.conditions:
        actual = _status_condition(each, document)
        if not actual[0]:
            problems.append(actual[1])
    for path, comparison in condition.json_path.items():
        values = paths.find(path, document)
        if not matches(comparison, values):
            problems.append(_value_text(path, values))
    return problems


def _state(condition: ObjectCondition, document: JsonObject) -> str:
    """Return the present values of everything that the condition names."""
    texts = [_status_condition(text, document)[1] for text in condition.conditions]
    texts += [_value_text(path, paths.find(path, document)) for path in condition.json_path]
    return ", ".join(texts)


def _value_text(path: str, values: Sequence[Json]) -> str:
    if not values or values == [""]:
        return f"{path} is unset"
    return f"{path} = {', '.join(map(shown, values))}"


def _status_condition(text: str, document: JsonObject) -> tuple[bool, str]:
    """Return whether an object has a condition TYPE=STATUS/REASON (or not: !TYPE), and its present state."""
    absent, name = text.startswith("!"), text.lstrip("!")
    name, _, wanted = name.partition("=")
    status, _, reason = wanted.partition("/")
    conditions: Sequence[JsonObject] = document.get("status", {}).get("conditions") or ()
    found = next((each for each in conditions if each.get("type") == name), None)
    if found is None:
        return absent, f"no condition {name}"
    actual = f"{name}={found.get('status', '')}"
    if found.get("reason"):
        actual += f"/{found['reason']}"
    if found.get("message"):
        actual += f" ({shown(found['message'])})"
    if absent:
        return False, actual
    return found.get("status") == status and (not reason or found.get("reason") == reason), actual


def name_of(document: JsonObject) -> str:
    """Return `pod default/web` for a JSON object."""
    metadata = document.get("metadata", {})
    namespace = metadata.get("namespace", "")
    name = metadata.get("name", "")
    return (
        f"{str(document.get('kind', '')).lower()} {namespace}/{name}"
        if namespace
        else f"{str(document.get('kind', '')).lower()} {name}"
    )
