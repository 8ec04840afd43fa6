"""Fields that the emulated version does not have, in objects that a newer API server has stored.

The decoder of a real API server skips such fields, so that its clients never see them; etcd keeps them until
the object is written. Objects here are served without decoding. An *outline* says at little cost which of
them have such a field: a protobuf message with nothing but the paths to these fields, so that the decoder
passes over all else. Only an object that has one is decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError, Message

from nominee.apiserver.schema import version_fields
from nominee.apiserver.schema.version_fields import Part
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Version
from nominee.machinery.wire import envelope
from nominee.machinery.wire.schema import Field

Prune = Callable[[bytes], bytes]
"""Returns an envelope without the fields; the same bytes when the object has none of them."""

_PACKAGE = "outline"
_RAW = 2
"""The number of runtime.Unknown.raw, which holds the object."""
_MAP_VALUE = 2
_SHAPES_MAX = 1000
_FIXED = {"double": FieldDescriptorProto.TYPE_FIXED64, "float": FieldDescriptorProto.TYPE_FIXED32}
_LENGTH_DELIMITED = frozenset({"string", "bytes"})

_Step = tuple[str, "tuple[_Step, ...] | None", bool]
"""A field of an outline: its name, the steps below it (None: a field to drop), if zero counts as unset."""


@cache
def prune_of(version: Version, kind: AnyKind) -> Prune | None:
    """Return the function that drops a kind's fields; None when the version has all fields of the kind."""
    if version >= version_fields.TABLE_VERSION:
        return None
    parts = version_fields.parts_of(version, kind.message.DESCRIPTOR.full_name)
    if not parts:
        return None
    has_any = _outline(parts)

    def prune(stored: bytes) -> bytes:
        try:
            if not has_any(stored):
                return stored
            obj = envelope.decode(kind, stored)
        except (DecodeError, envelope.EnvelopeError):
            # The reader that decodes the object reports it.
            return stored
        version_fields.drop(version, obj)
        return envelope.encode(obj)

    return prune


def _outline(parts: tuple[Part, ...]) -> Callable[[bytes], bool]:
    """Return the function that reports whether an envelope's object has any of the fields."""
    file = FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto2")
    inner, steps = _describe(file, parts)
    root, path = _wrapped(file, _RAW, inner, steps)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    outline_class = message_factory.GetMessageClass(pool.FindMessageTypeByName(root))
    start = len(envelope.MAGIC)
    # Objects without the fields differ little in outline: the steps are taken once for each.
    without: set[bytes] = set()

    def has_any(stored: bytes) -> bool:
        outline = outline_class.FromString(stored[start:])
        outline.DiscardUnknownFields()
        shape = outline.SerializeToString()
        if shape in without:
            return False
        if _has(outline, path):
            return True
        if len(without) < _SHAPES_MAX:
            without.add(shape)
        return False

    return has_any


def _has(message: Message, steps: tuple[_Step, ...]) -> bool:
    for name, inner, zero_is_unset in steps:
        if inner is None:
            values = getattr(message, name)
            if values and (not zero_is_unset or any(values)):
                return True
        elif message.HasField(name) and _has(getattr(message, name), inner):
            return True
    return False


def _describe(file: FileDescriptorProto, parts: tuple[Part, ...]) -> tuple[str, tuple[_Step, ...]]:
    """Add the outline of a message to the file; return its full name and its steps.

    A message on a path is a single one also where it is repeated: protobuf merges its occurrences, so that
    the outline has a field if any of them has it, without a loop. A field to drop is repeated, which keeps
    the values of all.
    """
    message = file.message_type.add(name=f"M{len(file.message_type)}")
    steps: list[_Step] = []
    for part in parts:
        name, number = part.field.name, part.field.number
        if part.inner is None:
            message.field.add(
                name=name, number=number, label=FieldDescriptorProto.LABEL_REPEATED, type=_type(part.field)
            )
            steps.append((name, None, part.is_always_sent))
            continue
        type_name, inner = _describe(file, part.inner)
        if part.field.label == "map":
            type_name, inner = _wrapped(file, _MAP_VALUE, type_name, inner)
        _add_message(message.field.add(name=name, number=number), type_name)
        steps.append((name, inner, False))
    return f"{_PACKAGE}.{message.name}", tuple(steps)


def _wrapped(
    file: FileDescriptorProto, number: int, inner: str, steps: tuple[_Step, ...]
) -> tuple[str, tuple[_Step, ...]]:
    """Add a message with one field of the type `inner`; return its full name and its steps."""
    message = file.message_type.add(name=f"M{len(file.message_type)}")
    _add_message(message.field.add(name="inner", number=number), inner)
    return f"{_PACKAGE}.{message.name}", (("inner", steps, False),)


def _add_message(field: FieldDescriptorProto, type_name: str) -> None:
    field.label = FieldDescriptorProto.LABEL_OPTIONAL
    field.type = FieldDescriptorProto.TYPE_MESSAGE
    field.type_name = f".{type_name}"


def _type(field: Field) -> FieldDescriptorProto.Type.ValueType:
    """Return a type with the wire type of the field."""
    if field.label == "map" or not field.is_scalar or field.type in _LENGTH_DELIMITED:
        return FieldDescriptorProto.TYPE_BYTES
    return _FIXED.get(field.type, FieldDescriptorProto.TYPE_INT64)
