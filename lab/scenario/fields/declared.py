"""Steps and conditions that declare their fields: the JSON Schema and the parsing come from the annotations.

`name: Text`, `count: Count = None`: an attribute without a default is a field that a file must give. The key
in the file is the attribute's name in camel case, unless `Field` has another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Self, get_type_hints

from nominee.lab.reports.records import camel_case
from nominee.lab.scenario.fields import names
from nominee.lab.scenario.fields.comparison import Comparison
from nominee.lab.scenario.fields.fragments import (
    COMPARISON,
    COMPONENT,
    COUNT,
    FLAG,
    JSON_PATH,
    SELECTOR,
    TEXT,
    Fragment,
    mapping,
    seconds,
)
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.machinery.wire.values.scalars import Json

_hints = lru_cache(get_type_hints)
Read = Callable[[Parser, FieldPath, Json], object]


def _plain(_parser: Parser, _path: FieldPath, value: Json) -> object:
    return value


def number(_parser: Parser, _path: FieldPath, value: Json) -> float:
    """Return a number of a file as a float."""
    return float(value)


def serving(parser: Parser, path: FieldPath, value: Json) -> str:
    """Return the name of a process that has a serving port."""
    return parser.component(path, value, serves=True)


def _kind(parser: Parser, path: FieldPath, value: Json) -> object:
    with parser.checking(path):
        names.kind(value)
    return value


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a file: its JSON Schema, how its value is read, and its key where it has another name."""

    schema: Fragment
    read: Read = _plain
    key: str = ""


Text = Annotated[str, Field(TEXT)]
Flag = Annotated[bool, Field(FLAG)]
Selector = Annotated[str, Field(SELECTOR)]
Kind = Annotated[str, Field(TEXT, _kind)]
ComponentName = Annotated[str, Field(COMPONENT, Parser.component)]
ServingComponent = Annotated[str, Field(COMPONENT, serving)]
Compared = Annotated[Comparison, Field(COMPARISON, Parser.comparison)]
Count = Annotated[Comparison | None, Field(COUNT, Parser.comparison)]
JsonPaths = Annotated[Mapping[str, Comparison], Field(JSON_PATH, Parser.json_path)]
Seconds = Annotated[float, Field(seconds("Seconds."), number)]


class Declared:
    """A frozen dataclass whose annotated attributes are the fields of a mapping in a file."""

    __slots__ = ()
    about: ClassVar[str] = ""
    """The description of the mapping in the JSON Schema."""

    @classmethod
    def schema(cls) -> Fragment:
        """Return the JSON Schema of the mapping."""
        attributes = _attributes(cls)
        properties = {key: each.field.schema for key, each in attributes.items()}
        required = [key for key, each in attributes.items() if each.required]
        return mapping(cls.about, properties, required=required)

    @classmethod
    def definitions(cls) -> Mapping[str, Fragment]:
        """Return the definitions of the JSON Schema that `schema` refers to and no other class has."""
        return {}

    @classmethod
    def read(cls, parser: Parser, path: FieldPath, value: Mapping[str, Json], **more: object) -> Self:
        """Return the object of a mapping, which the schema accepts; mistakes go to the parser.

        `more` has the attributes that are not fields of the mapping.
        """
        given = {
            each.name: each.field.read(parser, (*path, key), value[key])
            for key, each in _attributes(cls).items()
            if key in value
        }
        found = cls(**given, **more)
        found.check(parser, path, value)
        return found

    def check(self, parser: Parser, path: FieldPath, value: Mapping[str, Json]) -> None:
        """Record the mistakes of the mapping that the schema cannot express."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    """An attribute that is a field of a file."""

    name: str
    field: Field
    required: bool


def _attributes(cls: type[Declared]) -> Mapping[str, _Attribute]:
    """Return the attributes that are fields of a file, by their keys."""
    assert is_dataclass(cls)
    hints = _hints(cls, include_extras=True)
    found = {}
    for each in fields(cls):
        for field in getattr(hints[each.name], "__metadata__", ()):
            required = each.default is MISSING and each.default_factory is MISSING
            found[field.key or camel_case(each.name)] = _Attribute(each.name, field, required)
    return found
