"""`all`: conditions that hold at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nominee.lab.scenario.conditions.base import Combination, Condition, ConditionParser
from nominee.lab.scenario.fields.fragments import CONDITION, Fragment
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.machinery.wire.scalars import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf(Combination):
    """Conditions that must all hold at the same time."""

    key: ClassVar[str] = "all"
    row: ClassVar[str] = "a list of conditions that hold at the same time"
    how: ClassVar[Callable[[Iterable[bool]], bool]] = all

    conditions: Sequence[Condition]

    @property
    def parts(self) -> Sequence[Condition]:
        """Return the conditions."""
        return self.conditions

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the field."""
        return {
            "type": "array",
            "minItems": 1,
            "items": CONDITION,
            "description": "Conditions that hold at the same time.",
        }

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: list[Mapping[str, Json]]) -> Condition:
        """Return a condition of which every part must hold."""
        return cls(conditions=[parser.condition((*path, i), part) for i, part in enumerate(value)])

    def describe(self) -> str:
        """Return the conditions, joined by "and"."""
        return " and ".join(each.describe() for each in self.conditions)
