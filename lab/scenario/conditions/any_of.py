"""`any`: conditions of which one holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nominee.lab.scenario.conditions.base import Combination, Condition, ConditionParser
from nominee.lab.scenario.fields.fragments import CONDITION, Fragment
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.machinery.wire.scalars import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf(Combination):
    """Conditions of which one must hold."""

    key: ClassVar[str] = "any"
    row: ClassVar[str] = "a list of conditions of which one holds"
    how: ClassVar[Callable[[Iterable[bool]], bool]] = any

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
            "description": "Conditions of which one holds.",
        }

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: list[Mapping[str, Json]]) -> Condition:
        """Return a condition of which one part must hold."""
        return cls(conditions=[parser.condition((*path, i), part) for i, part in enumerate(value)])

    def describe(self) -> str:
        """Return the conditions, joined by "or"."""
        return " or ".join(each.describe() for each in self.conditions)
