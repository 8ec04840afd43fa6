"""Comparisons of values, as conditions state them. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nominee.machinery.resources.quantity import Quantity, QuantityError
from nominee.machinery.wire.values.scalars import Json

_TEXT_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of a value; every field that is set must hold.

    `equal` compares as text, so that `"2"` and 2 are equal; None means that the value must be absent or
    empty.
    """

    equal: Json = None
    has_equal: bool = False
    unequal: Json = None
    has_unequal: bool = False
    contains: str = ""
    matches: str = ""
    one_of: tuple[Json, ...] = ()
    quantity: str = ""
    at_least: float | None = None
    at_most: float | None = None
    present: bool | None = None


AT_LEAST_ONE = Comparison(at_least=1)
NONE = Comparison(equal=0, has_equal=True)


def shown(value: Json) -> str:
    """Return a value as text for a message."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."


def matches(comparison: Comparison, values: Sequence[Json]) -> bool:
    """Return whether the values at a path compare as stated: one of them for a value, none for `not`."""
    present = [value for value in values if value not in (None, "", [], {})]
    if comparison.present is not None and bool(present) != comparison.present:
        return False
    if comparison.has_equal and not _equals(comparison.equal, present, values):
        return False
    if comparison.has_unequal and _equals(comparison.unequal, present, values):
        return False
    texts = [_text(value) for value in present]
    if comparison.contains and not any(comparison.contains in text for text in texts):
        return False
    if comparison.matches and not any(re.search(comparison.matches, text) for text in texts):
        return False
    if comparison.one_of and not any(_equals(each, present, values) for each in comparison.one_of):
        return False
    if comparison.quantity and not any(_same_quantity(comparison.quantity, text) for text in texts):
        return False
    return _within(comparison, values)


def _within(comparison: Comparison, values: Sequence[Json]) -> bool:
    if comparison.at_least is None and comparison.at_most is None:
        return True
    for value in values:
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if comparison.at_least is not None and number < comparison.at_least:
            continue
        if comparison.at_most is None or number <= comparison.at_most:
            return True
    return False


def _equals(wanted: Json, present: Sequence[Json], values: Sequence[Json]) -> bool:
    if wanted is None or wanted == "":
        return not present
    return any(value == wanted or _text(value) == _text(wanted) for value in values)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _same_quantity(wanted: str, text: str) -> bool:
    try:
        return Quantity.parse(wanted) == Quantity.parse(text)
    except QuantityError:
        return False


def described(comparison: Comparison) -> str:
    """Return a comparison as the end of a sentence: `= Running`, `contains "x"`."""
    parts = []
    if comparison.has_equal:
        parts.append("is unset" if comparison.equal in (None, "") else f"= {shown(comparison.equal)}")
    if comparison.has_unequal:
        unset = comparison.unequal in (None, "")
        parts.append("is set" if unset else f"is not {shown(comparison.unequal)}")
    if comparison.contains:
        parts.append(f"contains {comparison.contains!r}")
    if comparison.matches:
        parts.append(f"matches {comparison.matches!r}")
    if comparison.one_of:
        parts.append(f"is one of {', '.join(map(shown, comparison.one_of))}")
    if comparison.quantity:
        parts.append(f"= {comparison.quantity}")
    if comparison.at_least is not None:
        parts.append(f">= {comparison.at_least:g}")
    if comparison.at_most is not None:
        parts.append(f"<= {comparison.at_most:g}")
    if comparison.present is not None:
        parts.append("is set" if comparison.present else "is unset")
    return " and ".join(parts)


def described_paths(json_path: Mapping[str, Comparison]) -> str:
    """Return comparisons by JSON path as a list."""
    return ", ".join(f"{path} {described(comparison)}" for path, comparison in json_path.items())


def counted(count: Comparison | None) -> str:
    """Return the comparison of a count as the end of a clause."""
    if count is None:
        return ""
    if count.has_equal and count.equal == 0:
        return ": no object"
    return f" (count {described(count)})"
