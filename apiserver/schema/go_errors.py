"""The errors of Go's decoders when a JSON value does not fit its field.

`json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string`: the struct that
has the field, the path to it without indexes and keys, the field's Go type.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf.message import Message

from nominee.apiserver.schema.documents import Literal
from nominee.apiserver.schema.go_named_types import MAPS_BY_RESOURCE_NAME, NAMED_TYPES
from nominee.machinery.wire.schema import Field, messages
from nominee.machinery.wire.values.scalars import OWN, DecodeError, json_type

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
# The type that a Go type with its own UnmarshalJSON decodes first.
_INNER = {
    "intstr.IntOrString": "int32",
    "v1.Time": "string",
    "v1.MicroTime": "string",
    "v1.Duration": "string",
}
_RESOURCE_LIST = "v1.ResourceList"
_NUMBERS = frozenset({"int32", "int64", "uint32", "uint64", "float32", "float64"})
_BY_QUALIFIED_NAME = frozenset({"resource.Quantity", "v1.DeviceAttribute", "v1.DeviceCapacity"})
_TEXTS = frozenset(NAMED_TYPES.values())
_Found = tuple[str, list[str], str, Any, bool]
"""(struct, path, Go type, value, whether the type decodes itself)"""
_GO_TYPES = {"bytes": "[]uint8", "double": "float64", "float": "float32"}


def unmarshal_problem(message_type: type[Message], document: Any, error: DecodeError) -> str:
    """Return Go's message for the codec's error at `error.path`."""
    found = _walk(message_type.DESCRIPTOR.full_name, document, error.path)
    return str(error) if found is None else _unmarshal_problem(found, error)


def _unmarshal_problem(found: _Found, error: DecodeError) -> str:
    struct, way, go_type, value, own = found
    if own and go_type in _INNER and not (isinstance(value, str) and _INNER[go_type] == "string"):
        go_type = _INNER[go_type]
    elif own:
        return error.message
    what = json_type(value)
    if what == "number" and go_type.startswith(("int", "uint")):
        what = f"number {value.text if isinstance(value, Literal) else value}"
    if go_type == "[]uint8" and what == "string":
        return error.message
    if not way:
        return f"json: cannot unmarshal {what} into Go value of type {go_type}"
    return f"json: cannot unmarshal {what} into Go struct field {struct}.{'.'.join(way)} of type {go_type}"


def conversion_problem(message_type: type[Message], document: Any, error: DecodeError) -> str:
    """Return Go's message for the codec's error in a document that is converted without JSON.

    Source: apimachinery 1.36, runtime/converter.go (FromUnstructured).
    """
    found = _walk(message_type.DESCRIPTOR.full_name, document, error.path)
    if found is None:
        return str(error)
    struct, _, go_type, value, own = found
    kind, of_type = _go_kind(value)
    if own or (go_type == "[]uint8" and kind == "string"):
        # The type decodes its own JSON: its error does not know the field.
        return _unmarshal_problem((struct, [], go_type, value, own), error)
    if go_type.startswith("[]"):
        return f"cannot restore slice from {kind}"
    if go_type.startswith("map[") or go_type == _RESOURCE_LIST:
        return f"cannot restore map from {kind}"
    of_kind = "string" if go_type in _TEXTS else go_type
    if "." in of_kind:
        return f"cannot restore struct from: {kind}"
    if of_type in _NUMBERS and (of_kind in _NUMBERS or (of_type, of_kind) == ("int64", "string")):
        # Types that Go converts, although JSON does not.
        return f"cannot convert {of_type} to {go_type}"
    return f"unrecognized type: {of_kind}"


def _go_kind(value: Any) -> tuple[str, str]:
    """Return the kind and the type of the Go value that a JSON value is decoded to."""
    match value:
        case dict():
            return "map", "map[string]interface {}"
        case list():
            return "slice", "[]interface {}"
        case str():
            return "string", "string"
        case bool():
            return "bool", "bool"
        case int():
            return "int64", "int64"
        case _:
            return "float64", "float64"


def _go_type(owner: str, field: Field, *, element: bool) -> str:
    """Return the Go type of a field of the message `owner`, or of an element of it."""
    name = NAMED_TYPES.get((owner, field.name)) or _GO_TYPES.get(field.type, field.type)
    if not field.is_scalar:
        package, _, short = field.type.rpartition(".")
        name = f"{_last(package)}.{short}"
    if element or field.label == "optional":
        return name
    if field.label == "repeated":
        return f"[]{name}"
    if owner.startswith("k8s.io.api.resource.") and name in _BY_QUALIFIED_NAME:
        return f"map[v1.QualifiedName]{name}"
    if field.name in MAPS_BY_RESOURCE_NAME:
        return f"map[v1.ResourceName]{name}"
    return _RESOURCE_LIST if name == "resource.Quantity" else f"map[string]{name}"


def _field(full_name: str, key: str) -> tuple[str, Field] | None:
    """Return (message, field) of a JSON key, also of a field of an inlined message."""
    for field in messages()[full_name].fields:
        if field.json_name == key:
            return full_name, field
        if (field.inline or not field.json_name) and not field.is_scalar and field.type in messages():
            inner = _field(field.type, key)
            if inner is not None:
                return inner
    return None


def _walk(full_name: str, document: Any, path: str) -> _Found | None:
    """Find the field at a path of the codec.

    The struct of a field that is inlined is the one that it is inlined in.
    """
    struct, owner, value = full_name, full_name, document
    way: list[str] = []
    current: str | None = full_name
    field: Field | None = None
    element = False
    for match in _STEP.finditer(path):
        key, index = match.groups()
        if index is not None:
            if not isinstance(value, list) or int(index) >= len(value) or field is None:
                return None
            value, element = value[int(index)], True
            current = None if field.is_scalar else field.type
            continue
        if field is not None and field.label == "map" and not element:
            # The rest is a map key, which may contain dots.
            rest = path[match.start() :]
            for name in sorted((n for n in value if rest == n or rest.startswith(f"{n}.")), key=len):
                value, element = value[name], True
                current = None if field.is_scalar else field.type
                return _last(struct), way, _go_type(owner, field, element=True), value, field.type in OWN
            return None
        if current is None or current not in messages() or not isinstance(value, dict):
            return None
        found = _field(current, key)
        if found is None or key not in value:
            return None
        struct, (owner, field), element = current, found, False
        way.append(key)
        value = value[key]
        current = None if field.is_scalar or field.label != "optional" else field.type
    if field is None:
        package, _, short = full_name.rpartition(".")
        return short, way, f"{_last(package)}.{short}", value, False
    own = field.type in OWN and (element or field.label == "optional")
    return _last(struct), way, _go_type(owner, field, element=element), value, own


def _last(name: str) -> str:
    return name.rpartition(".")[2]
