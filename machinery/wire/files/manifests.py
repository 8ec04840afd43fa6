"""Read objects from a YAML or JSON stream, and write YAML that is read as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from google.protobuf.message import Message

from nominee.machinery.api import kinds
from nominee.machinery.wire.codec import from_json
from nominee.machinery.wire.values.scalars import DecodeError, Json, json_type

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_OTHERWISE = frozenset({_INT, _FLOAT, "tag:yaml.org,2002:timestamp"})


class JSONTypesLoader(_BASE):  # type: ignore[misc]  # the C loader where libyaml is there
    """YAML with JSON's types only: a timestamp stays the text that it is, as in Kubernetes' YAML.

    Numbers are those of Go's YAML: 1e3 is a number, 12:30 is not.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012  # the name is PyYAML's
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _OTHERWISE]
        for first, resolvers in _BASE.yaml_implicit_resolvers.items()
    }


JSONTypesLoader.add_implicit_resolver(
    _INT,
    re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z"),
    list("-+0123456789"),
)
JSONTypesLoader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z"
    ),
    list("-+0123456789."),
)


class _JSONTypesDumper(yaml.SafeDumper):
    """YAML that `JSONTypesLoader` and YAML 1.1 read alike: the texts 1e3 and 2026-01-01 are quoted."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_JSONTypesDumper.yaml_implicit_resolvers = {
    first: [
        *yaml.SafeDumper.yaml_implicit_resolvers.get(first, ()),
        *JSONTypesLoader.yaml_implicit_resolvers.get(first, ()),
    ]
    for first in {**yaml.SafeDumper.yaml_implicit_resolvers, **JSONTypesLoader.yaml_implicit_resolvers}
}


def dump_yaml(document: Json, *, sort_keys: bool = True, width: int = 80) -> str:
    """Return a JSON value as a YAML document, in blocks and without aliases."""
    text: str = yaml.dump(
        document,
        Dumper=_JSONTypesDumper,
        sort_keys=sort_keys,
        width=width,
        allow_unicode=True,
        default_flow_style=False,
    )
    return text


def load_documents(text: str) -> list[Json]:
    """Return the documents of a YAML or JSON stream as JSON values.

    Raises:
        DecodeError: the text is not YAML.
    """
    if text.lstrip()[:1] == "{":
        # A hundred times as fast as YAML, which JSON is too.
        try:
            return [json.loads(text)]
        except ValueError:
            pass
    try:
        return list(yaml.load_all(text, Loader=JSONTypesLoader))
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise DecodeError(line, f"not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise DecodeError("", f"not valid YAML: {error}") from None


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an object in a stream: the document, from 1, and the path in it if that is a list."""

    document: int
    path: str = ""

    def __str__(self) -> str:
        return f"document {self.document}{self.path}"

    def below(self, path: str) -> Place:
        """Return the place of an item of a list."""
        return Place(self.document, f"{self.path}{path}")


class NoObjectError(DecodeError):
    """A document or item is no object."""

    def __init__(self, place: Place, found: Json) -> None:
        super().__init__(str(place), f"expected an object, got {json_type(found)}")
        self.place = place


def _expand(document: Json, place: Place) -> Iterator[tuple[Place, Mapping[str, Json]]]:
    if document is None:
        return
    if isinstance(document, list):
        for index, item in enumerate(document):
            yield from _expand(item, place.below(f"[{index}]"))
        return
    if not isinstance(document, Mapping):
        raise NoObjectError(place, document)
    kind, items = document.get("kind"), document.get("items")
    if isinstance(kind, str) and kind.endswith("List") and (items is None or isinstance(items, list)):
        for index, item in enumerate(items or ()):  # Go writes an empty list as null
            yield from _expand(item, place.below(f".items[{index}]"))
        return
    yield place, document


def manifest_documents(text: str) -> list[tuple[Place, Mapping[str, Json]]]:
    """Return each object in a stream as JSON, with `List` kinds expanded, and where it stands.

    Raises:
        DecodeError: the text is not YAML, or has something else than objects.
    """
    return [
        found
        for number, document in enumerate(load_documents(text), start=1)
        for found in _expand(document, Place(number))
    ]


def parse_object(data: Mapping[str, Json], where: str = "", *, strict: bool = False) -> Message:
    """Return the object of one JSON document.

    Raises:
        DecodeError: a value does not fit its field; names the place and field.
    """
    kind = kinds.by_kind(str(data.get("apiVersion", "")), str(data.get("kind", "")))
    if kind is None:
        name, version = data.get("kind", ""), str(data.get("apiVersion", ""))
        if version.partition("/")[0] == kinds.ADMISSION_REGISTRATION:
            raise DecodeError(where, f"{name} cannot be written: {kinds.NO_ADMISSION_REGISTRATION}")
        raise DecodeError(where, f'no matches for kind "{name}" in version "{version}"')
    try:
        message: Message = from_json(kind.message, data, strict=strict)
    except DecodeError as error:
        raise DecodeError(f"{where}: {error.path}" if where else error.path, error.message) from None
    return message


def parse_manifests(text: str, *, strict: bool = False) -> list[Message]:
    """Return the objects of a YAML or JSON stream, in order; `strict` refuses unknown fields."""
    return [parse_object(data, str(place), strict=strict) for place, data in manifest_documents(text)]
