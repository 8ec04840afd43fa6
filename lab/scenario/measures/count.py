"""`count`: how many objects ever had some properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from google.protobuf.message import Message

from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields.fragments import Fragment
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.measures.base import Measure, Recorder
from nominee.lab.scenario.observing.base import Condition, ConditionParser, Objects
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.wire.values.scalars import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Measure):
    """The number of objects that had all the properties at one moment of the run."""

    key: ClassVar[str] = "count"
    row: ClassVar[str] = (
        "the number of objects that had all properties of an `object` condition (without `count` and "
        "`exists`) at some moment of the run, also if they are gone"
    )

    object: ObjectCondition

    @classmethod
    def schema(cls) -> Fragment:
        return {"$ref": "#/$defs/objectCondition"}

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json) -> Measure:
        """Return the measure that counts objects."""
        for key in ("count", "exists"):
            if key in value:
                parser.fault((*path, key), "objects with the other properties are counted; leave it out")
        condition = ObjectCondition.parse(parser, path, value)
        assert isinstance(condition, ObjectCondition)
        return cls(object=condition)

    @property
    def conditions(self) -> Sequence[Condition]:
        """Return the properties."""
        return (self.object,)

    def recorder(self, objects: Objects) -> Recorder:
        """Return a recorder that counts."""
        return _Counter(self.object, objects)


class _Counter(Recorder):
    """Collects the UIDs of the objects."""

    def __init__(self, condition: ObjectCondition, objects: Objects) -> None:
        self._condition, self._objects = condition, objects
        self._counted: set[str] = set()

    def on_change(self, kind: AnyKind, obj: Message, now: float) -> None:
        """Count the object if it has the properties."""
        metadata = metadata_of(obj)
        if metadata.uid in self._counted or not self._condition.chooses(kind, obj):
            return
        if self._condition.evaluated([self._objects.json(kind, obj)]).holds:
            self._counted.add(metadata.uid)

    def value(self, now: float) -> Json:
        """Return the number of objects."""
        return len(self._counted)
