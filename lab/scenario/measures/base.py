"""What a kind of measures must have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from google.protobuf.message import Message

from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields.declared import Declared
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.observing.base import Condition, ConditionParser, Objects, leaves
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.wire.values.scalars import Json


class Recorder(ABC):
    """Collects one value during a run. Times are in seconds of a monotonic clock."""

    def on_step(self, name: str, now: float) -> None:
        """Record that a step begins."""
        return None

    @abstractmethod
    def on_change(self, kind: AnyKind, obj: Message, now: float) -> None:
        """Record the new state of an object, or its last one if it was deleted."""

    @abstractmethod
    def value(self, now: float) -> Json:
        """Return the value at the end of the run."""


class Measure(Declared, ABC):
    """A value that a run collects. A kind of measures is a frozen dataclass of its fields."""

    __slots__ = ()
    key: ClassVar[str]
    """The field of a file that has such a measure."""
    row: ClassVar[str]
    """Its row in docs/scenarios.md."""

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json) -> Measure:
        """Return the measure of a field, which the schema accepts; mistakes go to the parser."""
        return cls.read(parser, path, value)

    @property
    @abstractmethod
    def conditions(self) -> Sequence[Condition]:
        """Return the conditions that it looks at; all are about objects."""

    @property
    def steps(self) -> Sequence[str]:
        """Return the names of the steps that it needs."""
        return ()

    @abstractmethod
    def recorder(self, objects: Objects) -> Recorder:
        """Return a recorder for one run on a cluster with these objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMeasure:
    """A measure of a scenario; `variant` has the variables for which it is measured, if it uses some."""

    name: str
    measure: Measure
    variant: Mapping[str, Json]


def observable(parser: ConditionParser, path: FieldPath, value: Mapping[str, Json]) -> Condition:
    """Return a condition that can be evaluated at every change; another one is a mistake."""
    condition = parser.condition(path, value)
    if not condition.is_about_objects:
        parser.fault(path, "only conditions on objects and events are measured; processes are polled")
    return condition


def concerns(condition: Condition, kind: AnyKind, obj: Message) -> bool:
    """Return whether a change of an object may change the condition."""
    return any(
        kind in leaf.watched()
        and not (isinstance(leaf, ObjectCondition) and leaf.name not in ("", metadata_of(obj).name))
        for leaf in leaves(condition)
    )
