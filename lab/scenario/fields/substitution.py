"""Replace `${NAME}` in the texts of a step by the values of variables; `$${NAME}` is the text `${NAME}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import partial
from typing import TypeVar

from nominee.machinery.wire.values.scalars import Json

T = TypeVar("T")
_VARIABLE = re.compile(r"\$?\$\{([^}]*)\}")


def used(value: Json) -> list[str]:
    """Return the names of the variables in all texts of a value."""
    if isinstance(value, str):
        return [match[1] for match in _VARIABLE.finditer(value) if not match[0].startswith("$$")]
    if isinstance(value, Mapping):
        return [name for key, each in value.items() for name in (*used(key), *used(each))]
    if isinstance(value, list):
        return [name for each in value for name in used(each)]
    return []


def with_texts(value: Json, change: Callable[[str], Json]) -> Json:
    """Return a value in which all texts are changed, also those that are keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {with_texts(key, change): with_texts(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_texts(each, change) for each in value]
    return value


def escaped(value: Json) -> Json:
    """Return a value whose texts `substituted` replaces by those of this one."""
    return with_texts(value, lambda text: re.sub(r"\$\{[^}]*\}", lambda match: f"${match[0]}", text))


def substituted(value: T, variables: Mapping[str, str]) -> T:
    """Return a value with the variables in all of its texts replaced; unknown ones stay as they are."""
    found = _substituted(value, variables)
    assert isinstance(found, type(value))
    return found


def _value(variables: Mapping[str, str], match: re.Match[str]) -> str:
    text = match[0]
    return text[1:] if text.startswith("$$") else variables.get(match[1], text)


def _substituted(value: object, variables: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _VARIABLE.sub(partial(_value, variables), value)
    if isinstance(value, tuple):
        return tuple(_substituted(each, variables) for each in value)
    if isinstance(value, list):
        return [_substituted(each, variables) for each in value]
    if isinstance(value, dict):
        return {_substituted(key, variables): _substituted(each, variables) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type | Enum):
        changed = {each.name: _substituted(getattr(value, each.name), variables) for each in fields(value)}
        return replace(value, **changed)
    return value
