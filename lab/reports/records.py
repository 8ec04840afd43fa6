"""Dataclasses as JSON objects, and back: the keys are the names of the fields in camel case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Self, get_args, get_origin, get_type_hints

from nominee.machinery.wire.values.scalars import Json

_hints = lru_cache(get_type_hints)


class Record:
    """A dataclass that is written as a JSON object, and read again."""

    __slots__ = ()

    def as_json(self) -> dict[str, Json]:
        """Return the JSON object, without the fields that do not count in comparisons.

        Numbers have three decimals.
        """
        assert is_dataclass(self)
        return {
            camel_case(each.name): _plain(getattr(self, each.name)) for each in fields(self) if each.compare
        }

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Return the record that `as_json` wrote; a field that is absent has its default.

        Raises:
            TypeError, ValueError: the document is something else.
        """
        assert is_dataclass(cls)
        if not isinstance(document, Mapping):
            raise TypeError(f"{cls.__name__} is not an object")
        kinds = _hints(cls)
        keys = {each.name: camel_case(each.name) for each in fields(cls)}
        return cls(
            **{name: _value(kinds[name], document[key]) for name, key in keys.items() if key in document}
        )


def camel_case(name: str) -> str:
    """Return the key of a JSON object for the name of a Python attribute: `offsetSeconds`."""
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)


def _plain(value: object) -> Json:
    match value:
        case Enum():
            return value.value
        case float():
            return round(value, 3)
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case Record():
            return value.as_json()
    return value


def _value(kind: type, value: object) -> object:
    """Return a value of JSON as one of this type. Raises: TypeError, ValueError."""
    if kind is Any:
        return value
    container, arguments = get_origin(kind), get_args(kind)
    if container is not None:
        if not isinstance(value, Mapping if container is Mapping else list):
            raise TypeError(f"{value!r} is not {kind}")
        if isinstance(value, Mapping):
            return {name: _value(arguments[1], each) for name, each in value.items()}
        return tuple(_value(arguments[0], each) for each in value)
    if issubclass(kind, Record):
        return kind.from_json(value)
    if issubclass(kind, Enum):
        return kind(value)
    if not isinstance(value, int | float if kind is float else kind):
        raise TypeError(f"{value!r} is not {kind}")
    return value
