"""Serialized messages as Kubernetes JSON in one step: the same text as by `codec.to_json`, without its dicts.

A response of thousands of objects is made here. To ask a message for its attributes costs more than to read
its bytes, and the parts of objects made from one template (containers, tolerations, conditions) are equal
byte for byte: their text is cached. Each type is planned once, from the same table as the codec.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from nominee.machinery.wire import codec
from nominee.machinery.wire.codec import FieldPlan
from nominee.machinery.wire.values.scalars import Value

_PARTS_MAX: Final = 1024
_PART_BYTES_MAX: Final = 2048
_VARINT, _BYTES = 0, 2
"""Wire types. Kubernetes has no others."""

_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_Write = Callable[[Value], str]
"""Returns the JSON text of a value on the wire: an unsigned integer, or the bytes of anything else."""
_WriteMember = Callable[[Sequence[Value]], str]
"""Returns a member of a JSON object from a field's values in their order, or "" to leave it out."""


class _Writer:
    """Writes the messages of one type; fields are known by their tags, which are number and wire type."""

    __slots__ = ("_absent", "_members", "_numbers", "_type")

    def __init__(self, descriptor: Descriptor) -> None:
        self._type: type[Message] = GetMessageClass(descriptor)
        self._members: dict[int, _WriteMember] = {}
        # The texts of fields that are not set, in the order of JSON.
        self._absent: dict[int, str] = {}
        self._numbers: set[int] = set()
        for plan in codec.plan_of(descriptor.full_name).fields:
            field = descriptor.fields_by_name[plan.name]
            tag = field.number << 3 | (_VARINT if field.type in _INTEGERS else _BYTES)
            self._members[tag] = _member(plan, field)
            self._absent[tag] = _absent(plan, self._members[tag])
            self._numbers.add(field.number)

    def members(self, raw: bytes) -> str:
        """Return the members of the message's JSON object, without its braces. Raises: DecodeError."""
        texts, members = self._absent.copy(), self._members
        for tag, values in _values(raw).items():
            write = members.get(tag)
            if write is not None:
                texts[tag] = write(values)
            elif tag >> 3 in self._numbers:
                # Another wire type than its own: packed numbers, or bytes that are skipped.
                return _encode(codec.to_json(self._type.FromString(raw)))[1:-1]
        return ",".join(filter(None, texts.values()))

    def __call__(self, raw: bytes) -> str:
        return f"{{{self.members(raw)}}}"


_writer = cache(_Writer)


def members(message_type: type[Message], raw: bytes) -> str:
    """Return the members of the JSON object of a serialized message: no braces, no apiVersion and kind.

    Raises: DecodeError.
    """
    return _writer(message_type.DESCRIPTOR).members(raw)


# --- the bytes of a message ---


def _values(raw: bytes) -> dict[int, list[Value]]:
    """Return the values of each field by its tag, in their order. Raises: DecodeError."""
    found: dict[int, list[Value]] = {}
    at, end = 0, len(raw)
    try:
        while at < end:
            tag = raw[at]
            at += 1
            if tag >= 0x80:
                tag, at = _varint(tag, raw, at)
            value: Value = raw[at]
            at += 1
            if value >= 0x80:
                value, at = _varint(value, raw, at)
            form = tag & 7
            if form == _BYTES:
                begin, at = at, at + value
                value = raw[begin:at]
            elif form != _VARINT:
                raise DecodeError(f"no field of Kubernetes has the wire type {form}")
            if tag in found:
                found[tag].append(value)
            else:
                found[tag] = [value]
    except IndexError:
        at = end + 1
    if at > end:
        raise DecodeError("a truncated message")
    return found


def _varint(first: int, raw: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins with the byte before an offset, and the offset behind it."""
    value, shift = first & 0x7F, 7
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


# --- fields ---


def _absent(plan: FieldPlan, write: _WriteMember) -> str:
    """Return the text of a field that is not set."""
    if plan.plain is not None:
        return write([b"" if isinstance(plan.zero, str | bytes) else 0])
    if plan.label != "optional" or plan.pointer:
        return f'"{plan.json_name}":null' if plan.always else ""
    return write([b""])


def _member(plan: FieldPlan, field: FieldDescriptor) -> _WriteMember:
    """Return the function that writes a field: of several values the last counts, but messages are merged."""
    head = f'"{plan.json_name}":'
    if plan.label == "map":
        return _map(head, plan, field)
    value_of = _value(plan, field)
    if plan.label == "repeated":
        return lambda values: f"{head}[{','.join(map(value_of, values))}]"
    if plan.plain is not None:
        always = plan.always
        return lambda values: head + value_of(values[-1]) if values[-1] or always else ""
    if plan.scalar is not None:
        return lambda values: head + value_of(values[-1])
    # Joined bytes are a merged message.
    if plan.inline:
        message_type = _type_of(field)
        members_of = _cached(lambda raw: _writer(message_type).members(raw))
        return lambda values: members_of(b"".join(values))
    if plan.omit_zero:
        return lambda values: "" if (text := value_of(b"".join(values))) == "null" else head + text
    return lambda values: head + value_of(b"".join(values))


def _map(head: str, plan: FieldPlan, field: FieldDescriptor) -> _WriteMember:
    value_field = _type_of(field).fields_by_name["value"]
    value_of = _value(plan, value_field)
    merged = value_field.message_type is not None

    def write(values: Sequence[bytes]) -> str:
        entries: dict[str, str] = {}
        for raw in values:
            read = _values(raw)
            key = read.get(_KEY, _EMPTY)[-1].decode()
            of_key = read.get(_VALUE, _EMPTY)
            entries[key] = value_of(b"".join(of_key) if merged else of_key[-1])
        return f"{head}{{{','.join(f'{_encode(key)}:{entries[key]}' for key in sorted(entries))}}}"

    return write


_KEY, _VALUE = 1 << 3 | _BYTES, 2 << 3 | _BYTES
_EMPTY = (b"",)


def _type_of(field: FieldDescriptor) -> Descriptor:
    """Return the type of a field that is a message."""
    assert field.message_type is not None
    return field.message_type


# --- values ---


def _value(plan: FieldPlan, field: FieldDescriptor) -> _Write:
    """Return the function that writes one value."""
    if plan.scalar is not None:
        to_json = plan.scalar.to_json
        return _SCALARS.get(field.type) or (lambda raw: _encode(to_json(raw)))
    message_type, owner = _type_of(field), field.containing_type
    if plan.own is not None:
        own, read = plan.own, GetMessageClass(message_type).FromString
        return _cached(lambda raw: _encode(own.to_json(read(raw))))

    def write(raw: bytes) -> str:
        # A type may contain itself: its writer is made when it is needed.
        return _writer(message_type)(raw)

    # Metadata, spec and status as a whole are those of one object.
    return write if owner is not None and "metadata" in owner.fields_by_name else _cached(write)


def _cached(write: _Write) -> _Write:
    """Return the function with its results cached, for parts that many objects have."""
    cached = lru_cache(_PARTS_MAX)(write)
    return lambda raw: cached(raw) if len(raw) <= _PART_BYTES_MAX else write(raw)


def _int32(value: int) -> str:
    value &= 0xFFFFFFFF
    return str(value if value < 1 << 31 else value - (1 << 32))


def _int64(value: int) -> str:
    return str(value if value < 1 << 63 else value - (1 << 64))


_SCALARS: Final[dict[int, _Write]] = {
    FieldDescriptor.TYPE_STRING: lambda raw: json.encoder.encode_basestring(raw.decode()),
    FieldDescriptor.TYPE_BOOL: lambda value: "true" if value else "false",
    FieldDescriptor.TYPE_INT32: _int32,
    FieldDescriptor.TYPE_INT64: _int64,
}
_INTEGERS: Final = frozenset(_SCALARS) - {FieldDescriptor.TYPE_STRING}
