"""A document and its type: validation, keys of list elements, the set of its fields.

Errors are worded as upstream's, with Go's `%v` and `%#v`.

Source: structured-merge-diff v6, typed (validate.go, helpers.go, tofieldset.go).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from nominee.apiserver.managed_fields.fields import paths
from nominee.apiserver.managed_fields.fields.field_set import FieldSet
from nominee.apiserver.managed_fields.fields.schema import ANY, UNTYPED, Shape, Type
from nominee.machinery.api.names import go_quote
from nominee.machinery.patch.strategic_schema import go_text, go_type


class _Missing:
    """The absence of a value; null is a value."""

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
_ANY_LIST: Final = Type(Shape.LIST, atomic=True, element=ANY)
_ANY_MAP: Final = Type(Shape.MAP, element=ANY)


class TypedError(ValueError):
    """A document that does not fit its type; each problem is (path as shown, text)."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        lines = [f"{path}: {text}" if path else text for path, text in problems]
        super().__init__(lines[0] if len(lines) == 1 else "\n".join(["errors:", *(f"  {x}" for x in lines)]))


def resolve(declared: Type, *values: Any) -> Type:
    """Return the type, or for `ANY` the type of the values."""
    if declared.shape is not Shape.ANY:
        return declared
    for value in values:
        if isinstance(value, list):
            return _ANY_LIST
        if value is not MISSING and value is not None and not isinstance(value, dict):
            return UNTYPED
    return _ANY_MAP


def item_key(declared: Type, item: Any) -> str:
    """Return the path element of a list's element.

    Raises: ValueError for an element without its keys.
    """
    if not declared.keys:
        return _set_element(item)
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    found = {}
    defaults: Mapping[str, Any] = declared.element.defaults if declared.element is not None else {}
    for name in declared.keys:
        if name in item:
            found[name] = item[name]
        elif name in defaults:
            found[name] = defaults[name]
        else:
            raise ValueError(
                f'associative list with keys has an element that omits key field "{name}"'
                " (and doesn't have default value)"
            )
    return paths.key(found)


def _set_element(item: Any) -> str:
    if isinstance(item, dict):
        raise ValueError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ValueError("not supported: associative list with lists as elements")
    if item is None:
        raise ValueError("associative list without keys has an element that's an explicit null")
    return paths.value(item)


# Checking.


def validate(value: Any, declared: Type) -> None:
    """Validate a document; lists may not have duplicate elements.

    Raises: TypedError.
    """
    problems: list[tuple[str, str]] = []
    _validate(value, declared, "", problems)
    if problems:
        raise TypedError(problems)


def _validate(value: Any, declared: Type, path: str, problems: list[tuple[str, str]]) -> None:
    declared = resolve(declared, value)
    if value is None:
        return
    if declared.shape is Shape.SCALAR:
        problem = scalar_problem(declared.scalar, value)
        if problem:
            problems.append((path, problem))
    elif declared.shape is Shape.LIST:
        if not isinstance(value, list):
            problems.append((path, f"expected list, got {_go_pointer(value)}"))
        else:
            _validate_list(value, declared, path, problems)
    elif not isinstance(value, dict):
        problems.append((path, f"expected map, got {_go_pointer(value)}"))
    else:
        for name, inner in value.items():
            wanted = declared.field_type(name)
            if wanted is None:
                problems.append((f"{path}.{name}", "field not declared in schema"))
                break
            _validate(inner, wanted, f"{path}.{name}", problems)


def _validate_list(value: list[Any], declared: Type, path: str, problems: list[tuple[str, str]]) -> None:
    assert declared.element is not None
    seen = set()
    for index, item in enumerate(value):
        if declared.atomic:
            _validate(item, declared.element, f"{path}[{index}]", problems)
            continue
        try:
            element = item_key(declared, item)
        except ValueError as error:
            problems.append((path, f"element {index}: {error}"))
            return
        if element in seen:
            problems.append((path, f"duplicate entries for key {paths.format_element(element)}"))
        seen.add(element)
        _validate(item, declared.element, path + paths.format_element(element), problems)


def scalar_problem(scalar: str, value: Any) -> str:
    """Return why a value is not of this scalar type, or ""; null is of every type."""
    if value is None or value is MISSING:
        return ""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric":
        return "" if number else f"expected numeric (int or float), got {go_type(value)}"
    if scalar == "string":
        return "" if isinstance(value, str) else f"expected string, got {_go_syntax(value)}"
    if scalar == "boolean":
        return "" if isinstance(value, bool) else f"expected boolean, got {_go_pointer(value)}"
    return f"expected any scalar, got {_go_pointer(value)}" if isinstance(value, dict | list) else ""


def _go_pointer(value: Any) -> str:
    """Return Go's `%v` of a pointer to the value's wrapper."""
    return f"&{{{go_text(value)}}}"


def _go_syntax(value: Any) -> str:
    """Return Go's `%#v` of a pointer to the value's wrapper."""
    return f"&value.valueUnstructured{{Value:{_go_literal(value)}}}"


def _go_literal(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_go_literal(key)}:{_go_literal(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_literal, value))}}}"
    if isinstance(value, str):
        return go_quote(value)
    if value is None:
        return "interface {}(nil)"
    return go_text(value)


# The fields of a document.


def field_set(value: Any, declared: Type) -> FieldSet:
    """Return every leaf and every list element of a validated document."""
    found = FieldSet()
    _fields(value, declared, found)
    return found


def _fields(value: Any, declared: Type, into: FieldSet) -> bool:
    """Collect the fields below a value; return whether the value itself is a leaf."""
    declared = resolve(declared, value)
    if declared.shape is Shape.SCALAR or declared.atomic:
        return True
    if declared.shape is Shape.LIST:
        _list_fields(value if isinstance(value, list) else [], declared, into)
    elif isinstance(value, dict):
        for name, inner in value.items():
            element = paths.field(name)
            below = FieldSet()
            leaf = _fields(inner, declared.field_type(name) or ANY, below)
            # A struct field is implied by its members; an entry of a map is a member itself.
            if leaf or inner is None or inner == {} or name not in declared.fields:
                into.members.add(element)
            if below:
                into.children[element] = below
    return False


def _list_fields(value: list[Any], declared: Type, into: FieldSet) -> None:
    assert declared.element is not None
    elements = [item_key(declared, item) for item in value]
    counts = Counter(elements)
    for element, item in zip(elements, value, strict=True):
        into.members.add(element)
        if counts[element] > 1:
            continue  # only the index of a duplicate is known
        below = FieldSet()
        _fields(item, declared.element, below)
        if below:
            into.children[element] = below
