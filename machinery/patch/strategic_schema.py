"""The rules by which JSON fields merge in a strategic merge patch, from the table of messages.

Source: the `patchStrategy` and `patchMergeKey` tags of Kubernetes' Go types, in
`nominee.machinery.wire.schema`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, Final

from nominee.machinery.wire.schema import Field, messages

# A JSON document, list or scalar as `json.loads` gives it.
Json = Any

DIRECTIVE: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"
MERGE: Final = "merge"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"
SET_ORDER: Final = "$setElementOrder"


class PatchError(ValueError):
    """A patch that cannot be applied; `code` is the HTTP status that the API server answers with."""

    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a JSON object: a message, a map whose values have one shape, or anything (no message)."""

    message: str = ""
    is_map: bool = False


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The rule that merges one field. `shape` is of the value, or of the elements where it is a list."""

    shape: Shape
    strategy: str = ""
    merge_key: str = ""
    retain_keys: bool = False


ANYTHING: Final = FieldRule(Shape())


@cache
def _fields(message: str) -> dict[str, Field]:
    """Return the fields of a message by JSON name, those of inlined structs included."""
    found: dict[str, Field] = {}
    for field in messages()[message].fields if message in messages() else ():
        if field.inline:
            found |= _fields(field.type)
        elif field.json_name:
            found[field.json_name] = field
    return found


@lru_cache(maxsize=16384)
def rule(shape: Shape, key: str) -> FieldRule:
    """Return the rule that merges `key` in an object of this shape.

    Raises:
        PatchError: the message does not have the field.
    """
    if shape.is_map:
        return FieldRule(Shape(shape.message))
    if not shape.message or key in ("apiVersion", "kind"):  # the table has no fields for TypeMeta
        return ANYTHING
    fields = _fields(shape.message)
    if not fields:
        return ANYTHING  # a type that writes itself: raw JSON
    field = fields.get(key)
    if field is None:
        name = shape.message.rpartition(".")[2]
        raise PatchError(f'unable to find api field in struct {name} for the json field "{key}"')
    strategy = "".join(field.patch_strategies - {"retainKeys"})
    message = "" if field.is_scalar else field.type
    return FieldRule(
        Shape(message, field.label == "map"),
        strategy,
        field.merge_key,
        "retainKeys" in field.patch_strategies,
    )


def root(message_full_name: str) -> Shape:
    """Return the shape of a whole object.

    Raises:
        KeyError: the message is not in the table.
    """
    return Shape(messages()[message_full_name].full_name)


def go_text(value: Json) -> str:
    """Return a JSON value as Go's `%v` prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_text(each) for each in value)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    type(None): "<nil>",
}


def go_type(value: Json) -> str:
    """Return the Go type that a JSON value decodes to; two values of one type merge, others replace.

    A parser may have types of its own: the API server's keep keys that came twice, and how numbers were
    written.
    """
    found = _GO_TYPES.get(type(value))
    return found or next(_GO_TYPES[base] for base in type(value).__mro__ if base in _GO_TYPES)


def bad_type(expected: Json, actual: Json) -> PatchError:
    return PatchError(f"expected a {go_type(expected)}, but received a {go_type(actual)}")


def no_merge_key(element: Json, merge_key: str) -> PatchError:
    return PatchError(f"map: {go_text(element)} does not contain declared merge key: {merge_key}")


def bad_directive(directive: Json, patch: Json) -> PatchError:
    return PatchError(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}")


def check_elements(*lists: list[Json]) -> str:
    """Return the Go type that all elements have.

    Raises:
        PatchError: the types differ, are lists, or the lists are empty.
    """
    found = ""
    for elements in lists:
        for element in elements:
            kind = go_type(element)
            if kind == "[]interface {}":
                raise PatchError("lists of lists are not supported", 422)
            if found not in ("", kind):
                shown = go_text(list(lists))
                raise PatchError(f"list element types are not identical: {shown}")
            found = kind
    if not found:
        raise PatchError("no elements in any of the given slices")
    return found


def sort_like(elements: list[Json], order: list[Json], merge_key: str) -> list[Json]:
    """Sort by the place in `order`; elements marked for deletion go to the end.

    Go's stable sort gets a comparison that calls anything unplaced less; the insertion below does to a short
    list what that sort does.
    """
    deletions: list[Json] = []
    if merge_key:
        for element in (*elements, *order):
            if not isinstance(element, dict):
                raise bad_type({}, element)
            if merge_key not in element:
                raise no_merge_key(element, merge_key)
        deletions = [element for element in elements if element.get(DIRECTIVE) == DELETE]
        elements = [element for element in elements if element.get(DIRECTIVE) != DELETE]
    positions = Positions(order, merge_key)
    places = [positions.of(element) for element in elements]
    if min(places, default=0) >= 0:
        placed = sorted(zip(places, elements, strict=True), key=itemgetter(0))
        return [element for _, element in placed] + deletions
    result: list[tuple[int, Json]] = []
    for place, element in zip(places, elements, strict=True):
        at = len(result)
        while at > 0 and (place < 0 or result[at - 1][0] < 0 or place < result[at - 1][0]):
            at -= 1
        result.insert(at, (place, element))
    return [element for _, element in result] + deletions


def same(one: Json, other: Json) -> bool:
    """Go's ==: 1 is not true, and not 1.0."""
    return go_type(one) == go_type(other) and bool(one == other)


class Positions:
    """The first place of each key (or, without a merge key, of each value) in a list.

    A list in a patch may have tens of thousands of elements, too many to search for each of them.
    """

    __slots__ = ("_merge_key", "_places")

    def __init__(self, elements: Iterable[Json], merge_key: str) -> None:
        self._merge_key = merge_key
        self._places: dict[tuple[str, Json], int] = {}
        for place, element in enumerate(elements):
            self.add(element, place)

    def add(self, element: Json, place: int) -> None:
        """Note an element, unless there is one with its key already."""
        self._places.setdefault(self._key(element), place)

    def of(self, element: Json) -> int:
        """Return the place of the element with this one's key, or -1."""
        return self._places.get(self._key(element), -1)

    def _key(self, element: Json) -> tuple[str, Json]:
        if not self._merge_key:
            return identity(element)
        return identity(element.get(self._merge_key) if isinstance(element, dict) else None)


def identity(value: Json) -> tuple[str, Json]:
    """Return a hashable value that is equal for two values exactly where `same` holds."""
    if type(value) is str:  # as most keys are
        return "string", value
    if isinstance(value, dict | list):
        return go_type(value), json.dumps(value, sort_keys=True)
    return go_type(value), value
