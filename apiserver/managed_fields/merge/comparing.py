"""The differences of two documents, as sets of fields.

Source: structured-merge-diff v6, typed/compare.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nominee.apiserver.managed_fields.fields.field_set import FieldSet
from nominee.apiserver.managed_fields.fields.paths import field as field_element
from nominee.apiserver.managed_fields.fields.schema import ANY, Shape, Type
from nominee.apiserver.managed_fields.fields.typed import MISSING, item_key, resolve


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields that were removed, modified and added; a field is in one set only."""

    removed: FieldSet = field(default_factory=FieldSet)
    modified: FieldSet = field(default_factory=FieldSet)
    added: FieldSet = field(default_factory=FieldSet)

    def filtered(self, keep: Callable[[FieldSet], FieldSet]) -> Comparison:
        return Comparison(keep(self.removed), keep(self.modified), keep(self.added))


def compare(old: Any, new: Any, declared: Type) -> Comparison:
    """Compare two documents of a type.

    Raises: ValueError for list elements without their keys.
    """
    found = Comparison()
    _compare(old, new, declared, (), found)
    return found


def _compare(old: Any, new: Any, declared: Type, path: tuple[str, ...], found: Comparison) -> None:
    kind = resolve(declared, new, old)
    if kind.shape is Shape.SCALAR or kind.atomic:
        _leaf(old, new, path, found)
        return
    if kind.shape is Shape.LIST:
        mine, theirs = old if isinstance(old, list) else [], new if isinstance(new, list) else []
        if not mine and not theirs:
            _leaf(old, new, path, found)
            return
        _compare_lists(mine, theirs, kind, path, found)
    else:
        left, right = old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {}
        if not left and not right:
            _leaf(old, new, path, found)
            return
        for name in left.keys() | right.keys():
            inner = kind.field_type(name) or ANY
            _compare(
                left.get(name, MISSING), right.get(name, MISSING), inner, (*path, field_element(name)), found
            )
    if old is MISSING:
        found.added.insert(path)
    elif new is MISSING:
        found.removed.insert(path)


def _leaf(old: Any, new: Any, path: tuple[str, ...], found: Comparison) -> None:
    if old is MISSING:
        found.added.insert(path)
    elif new is MISSING:
        found.removed.insert(path)
    elif not same(old, new):
        found.modified.insert(path)


def _compare_lists(
    old: list[Any], new: list[Any], kind: Type, path: tuple[str, ...], found: Comparison
) -> None:
    """Compare element by element; duplicates are identified by their index."""
    assert kind.element is not None
    mine, theirs = _by_key(old, kind), _by_key(new, kind)
    for element in {**mine, **theirs}:
        left, right = mine.get(element, []), theirs.get(element, [])
        where = (*path, element)
        if len(left) <= 1 and len(right) <= 1:
            before = left[0] if left else MISSING
            _compare(before, right[0] if right else MISSING, kind.element, where, found)
        elif len(left) > 1 and len(right) > 1:
            if not same(left, right):
                found.modified.insert(where)
        elif len(left) > 1:
            if right:
                _compare(MISSING, right[0], kind.element, where, found)
            found.removed.insert(where)
        else:
            if left:
                _compare(left[0], MISSING, kind.element, where, found)
            found.added.insert(where)


def _by_key(items: list[Any], kind: Type) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {}
    for item in items:
        made.setdefault(item_key(kind, item), []).append(item)
    return made


def same(left: Any, right: Any) -> bool:
    """Report whether two values are equal as JSON: true is not 1, but 1 is 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
