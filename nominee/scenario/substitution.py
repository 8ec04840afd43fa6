"""Replace `${NAME}` in the texts of a step by the values of variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TypeVar

T = TypeVar("T")
_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


def substituted(value: T, variables: Mapping[str, str]) -> T:
    """Return a value with the variables in all of its texts replaced; unknown ones stay as they are."""
    found = _substituted(value, variables)
    assert isinstance(found, type(value))
    return found


def _substituted(value: object, variables: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), value)
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
