"""Removal of a set of fields from a document, and sets adjusted to a type.

Source: structured-merge-diff v6, typed/remove.go, typed/reconcile_schema.go and fieldpath/set.go.
"""

from __future__ import annotations

from typing import Any

from nominee.apiserver.managed_fields.fields import paths
from nominee.apiserver.managed_fields.fields.field_set import FieldSet
from nominee.apiserver.managed_fields.fields.schema import ANY, Shape, Type
from nominee.apiserver.managed_fields.fields.typed import item_key, resolve


def without(value: Any, gone: FieldSet, declared: Type) -> Any:
    """Return a new document without these fields and elements; a list or map that loses all is null."""
    kind = resolve(declared, value)
    if kind.shape is Shape.SCALAR:
        return value
    if kind.atomic or not value:
        return None
    if kind.shape is Shape.LIST:
        if not isinstance(value, list):
            return None
        assert kind.element is not None
        items = []
        for item in value:
            element = item_key(kind, item)
            if element in gone.members:
                continue
            below = gone.below(element)
            items.append(without(item, below, kind.element) if below else item)
        return items or None
    if not isinstance(value, dict):
        return None
    made = {}
    for name, inner in value.items():
        element = paths.field(name)
        if element in gone.members:
            continue
        below = gone.below(element)
        made[name] = without(inner, below, kind.field_type(name) or ANY) if below else inner
    return made or None


def _type_below(declared: Type, element: str) -> Type | None:
    if element.startswith("f:"):
        return declared.field_type(element[2:]) if declared.shape is Shape.MAP else None
    return declared.element if element.startswith("k:") and declared.shape is Shape.LIST else None


def with_named_fields(found: FieldSet, declared: Type | None) -> FieldSet:
    """Return the set and every struct field that has members below it."""
    if not found.children:
        return found
    members = set(found.members)
    children = {}
    for element, child in found.children.items():
        if declared is not None and element.startswith("f:") and element[2:] in declared.fields:
            members.add(element)
        children[element] = with_named_fields(child, _type_below(declared or ANY, element))
    return FieldSet(members, children)


def reconcile_atomic(found: FieldSet, declared: Type) -> FieldSet:
    """Return a set adjusted to types that are atomic now: members below such a value become that value."""
    return _reconciled(found, declared)[0]


def _reconciled(found: FieldSet, declared: Type) -> tuple[FieldSet, bool]:
    """Return (set, whether it differs)."""
    members, children, changed = set(found.members), dict(found.children), False
    for element, child in found.children.items():
        below = _type_below(declared, element)
        if below is None or not child:
            continue
        if below.atomic:
            del children[element]
            members.add(element)
            changed = True
        elif below.shape in (Shape.LIST, Shape.MAP):
            inner, differs = _reconciled(child, below)
            if differs:
                children[element], changed = inner, True
    return (FieldSet(members, children), True) if changed else (found, False)
