"""`values`: the values of a field over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from google.protobuf.message import Message

from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields import paths
from nominee.lab.scenario.fields.fragments import TEXT, Fragment, mapping
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.measures.base import Measure, Recorder
from nominee.lab.scenario.observing.base import Condition, ConditionParser, Objects
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire.values.scalars import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(Measure):
    """The values at a JSON path of one object while it existed, without repetitions; "" is unset."""

    key: ClassVar[str] = "values"
    row: ClassVar[str] = (
        "`kind`, `name`, `namespace`, `jsonPath` (one path): the list of its values while the object "
        'existed, without repetitions; `""` is unset'
    )

    object: ObjectCondition
    path: str

    @classmethod
    def schema(cls) -> Fragment:
        properties = {"kind": TEXT, "name": TEXT, "namespace": TEXT, "jsonPath": TEXT}
        return mapping("The values of a field.", properties, required=["kind", "name", "jsonPath"])

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json) -> Measure:
        """Return the measure of a field's values."""
        chosen = {key: each for key, each in value.items() if key != "jsonPath"}
        condition = ObjectCondition.parse(parser, path, chosen)
        assert isinstance(condition, ObjectCondition)
        with parser.checking((*path, "jsonPath")):
            paths.compiled(value["jsonPath"])
        return cls(object=condition, path=value["jsonPath"])

    @property
    def conditions(self) -> Sequence[Condition]:
        """Return the condition that chooses the object."""
        return (self.object,)

    def recorder(self, objects: Objects) -> Recorder:
        """Return a recorder of the values."""
        return _Log(self, objects)


class _Log(Recorder):
    """Collects the values."""

    def __init__(self, measure: Values, objects: Objects) -> None:
        self._measure, self._objects = measure, objects
        self._values: list[Json] = []

    def on_change(self, kind: AnyKind, obj: Message, now: float) -> None:
        """Add the value, if it is another one."""
        if not self._measure.object.chooses(kind, obj):
            return
        found = paths.find(self._measure.path, self._objects.json(kind, obj))
        value = found[0] if found and found[0] is not None else ""
        if not self._values or self._values[-1] != value:
            self._values.append(value)

    def value(self, now: float) -> Json:
        """Return the values."""
        return list(self._values)
