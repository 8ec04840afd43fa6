"""`event`: events (core/v1) about an object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.comparison import (
    AT_LEAST_ONE,
    Comparison,
    counted,
    described,
    matches,
    shown,
)
from nominee.lab.scenario.fields.declared import Count, Field, Text
from nominee.lab.scenario.fields.fragments import COMPARISON, one_of, text
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, JsonObject, Objects, Observed
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire.values.scalars import Json

_SHOWN_MAX = 5


def _kind(parser: Parser, path: FieldPath, value: Json) -> str:
    """Return the kind as Events name it."""
    with parser.checking(path):
        return names.kind(value).kind if value else ""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCondition(Condition):
    """Events (core/v1) about an object; `count` None means at least one."""

    key: ClassVar[str] = "event"
    row: ClassVar[str] = "`reason`, `type`, `kind`, `name`, `namespace`, `component`, `message`, `count`"
    about: ClassVar[str] = "Events (core/v1)."

    reason: Text = ""
    type: Annotated[str, Field(one_of("Normal", "Warning"))] = ""
    kind: Annotated[str, Field(text("Kind of the object that the event is about."), _kind)] = ""
    name: Text = ""
    namespace: Text = ""
    component: Annotated[str, Field(text("Reporting component."))] = ""
    message: Annotated[Comparison | None, Field(COMPARISON, Parser.comparison)] = None
    count: Count = None

    def describe(self) -> str:
        about = f" about {self.kind or 'object'} {self.name}" if self.name else ""
        message = f" whose message {described(self.message)}" if self.message else ""
        return f"an event {self.reason}{about}{message}{counted(self.count)}"

    @property
    def is_about_objects(self) -> bool:
        return True

    def watched(self) -> Sequence[AnyKind]:
        return [kinds.EVENT]

    def evaluate(self, objects: Objects) -> Observed:
        """Evaluate the condition on the events of its namespace."""
        events = objects.messages(kinds.EVENT, self.namespace)
        return self.evaluated([objects.json(kinds.EVENT, each) for each in events])

    def evaluated(self, events: Sequence[JsonObject]) -> Observed:
        """Evaluate the condition on these events, counted with their repetitions."""
        about = [event for event in events if _is_about(self, event)]
        found = [event for event in about if _has(self, event)]
        total = sum(_repetitions(event) for event in found)
        holds = matches(self.count or AT_LEAST_ONE, [total])
        listed = "; ".join(
            f"{event.get('reason')}: {shown(event.get('message', ''))}"
            for event in (found or about)[-_SHOWN_MAX:]
        )
        first = found[0] if found else None
        return Observed(holds=holds, text=listed or "there is no such event", found=first)


def _is_about(condition: EventCondition, event: JsonObject) -> bool:
    involved = event.get("involvedObject", {})
    return all(
        not wanted or involved.get(key) == wanted
        for key, wanted in (
            ("kind", condition.kind),
            ("name", condition.name),
            ("namespace", condition.namespace),
        )
    )


def _has(condition: EventCondition, event: JsonObject) -> bool:
    component = (event.get("reportingComponent"), event.get("source", {}).get("component"))
    if condition.reason and event.get("reason") != condition.reason:
        return False
    if condition.type and event.get("type") != condition.type:
        return False
    if condition.component and condition.component not in component:
        return False
    return condition.message is None or matches(condition.message, [event.get("message", "")])


def _repetitions(event: JsonObject) -> int:
    series = event.get("series") or {}
    return int(event.get("count") or series.get("count") or 1)
