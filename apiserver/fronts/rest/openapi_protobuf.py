"""An OpenAPI v2 document in protobuf, as kubectl before 1.27 and client-go ask for it.

The messages are gnostic's (openapi.v2, OpenAPIv2.proto), of which our document needs a part: a field's number
and how its value is written are in the tables below. What is no part of a document's own fields (x-...) is
YAML there, and JSON is YAML.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from machinery.wire.envelope import varint

FORM = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPTED = frozenset({FORM, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})
_BYTES = 2  # the wire type of everything that has a length
Write = Callable[[Any], bytes]


def of_document(document: Mapping[str, Any]) -> bytes:
    """The whole document."""
    return _message(document, _DOCUMENT, 16)


def _field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def _text(number: int) -> Write:
    return lambda value: _field(number, value.encode())


def _texts(number: int) -> Write:
    return lambda values: b"".join(_field(number, value.encode()) for value in values)


def _flag(number: int) -> Write:
    return lambda value: varint(number << 3) + varint(int(value)) if value else b""


def _any(value: Any) -> bytes:
    return _field(2, json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")


def _anys(number: int) -> Write:
    return lambda values: b"".join(_field(number, _any(value)) for value in values)


def _inside(number: int, write: Write) -> Write:
    """What `write` makes, in a message of its own."""
    return lambda value: _field(number, write(value))


def _named(number: int, entries: Iterable[tuple[str, bytes]]) -> bytes:
    """A map, as a list of (name, value)."""
    return b"".join(_field(number, _field(1, name.encode()) + _field(2, value)) for name, value in entries)


def _message(value: Mapping[str, Any], fields: Mapping[str, Write], extension: int = 0) -> bytes:
    """Fields by the table; those of other names are vendor extensions where there is a number for them."""
    made, extensions = [], []
    for name, inner in value.items():
        write = fields.get(name)
        if write is not None:
            made.append(write(inner))
        elif name.startswith("x-"):
            extensions.append((name, _any(inner)))
    return b"".join(made) + _named(extension, extensions)


def _schema(value: Mapping[str, Any]) -> bytes:
    return _message(value, _SCHEMA, 31)


def _schemas(value: Mapping[str, Any]) -> bytes:
    return _named(1, ((name, _schema(each)) for name, each in value.items()))


def _operation(value: Mapping[str, Any]) -> bytes:
    return _message(value, _OPERATION, 13)


def _parameter(value: Mapping[str, Any]) -> bytes:
    """Ours are all in the query: ParametersItem, Parameter, NonBodyParameter, the parameter."""
    return _field(1, _field(2, _field(3, _message(value, _QUERY_PARAMETER, 23))))


def _responses(value: Mapping[str, Any]) -> bytes:
    return _named(1, ((code, _field(1, _message(each, _RESPONSE, 5))) for code, each in value.items()))


def _paths(value: Mapping[str, Any]) -> bytes:
    return _named(2, ((path, _message(item, _ITEM, 10)) for path, item in value.items()))


_SCHEMA: dict[str, Write] = {
    "$ref": _text(1),
    "format": _text(2),
    "description": _text(4),
    "default": _inside(5, _any),
    "required": _texts(19),
    "enum": _anys(20),
    # Which may be a schema or a flag; ours is a schema.
    "additionalProperties": _inside(21, _inside(1, _schema)),
    "type": _inside(22, _text(1)),
    "items": _inside(23, _inside(1, _schema)),
    "properties": _inside(25, _schemas),
}
_QUERY_PARAMETER: dict[str, Write] = {
    "in": _text(2), "description": _text(3), "name": _text(4), "type": _text(6), "uniqueItems": _flag(20),
}  # fmt: skip
_RESPONSE: dict[str, Write] = {"description": _text(1), "schema": _inside(2, _inside(1, _schema))}
_OPERATION: dict[str, Write] = {
    "description": _text(3),
    "operationId": _text(5),
    "produces": _texts(6),
    "consumes": _texts(7),
    "parameters": lambda values: b"".join(_field(8, _parameter(value)) for value in values),
    "responses": _inside(9, _responses),
}
_ITEM: dict[str, Write] = {
    name: _inside(number, _operation)
    for name, number in {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}.items()
}
_INFO: dict[str, Write] = {"title": _text(1), "version": _text(2)}
_DOCUMENT: dict[str, Write] = {
    "swagger": _text(1),
    "info": _inside(2, lambda value: _message(value, _INFO)),
    "paths": _inside(8, _paths),
    "definitions": _inside(9, _schemas),
}
