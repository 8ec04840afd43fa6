"""Kubernetes JSON to messages and back, planned once per message type from the table.

protobuf's own json_format is wrong here: Kubernetes writes quantities and times as strings, int64 as numbers,
IntOrString as either, raw JSON where a message holds raw bytes, and empties as its Go tags say. JSON that
comes out has the keys in the table's order, `apiVersion` and `kind` first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message

from nominee.machinery.api import kinds
from nominee.machinery.wire.schema import Field, messages
from nominee.machinery.wire.values import scalars
from nominee.machinery.wire.values.scalars import DecodeError, Json, Value

__all__ = ["DecodeError", "FieldPlan", "MessagePlan", "from_json", "plan_of", "to_json"]

_M = TypeVar("_M", bound=Message)


@dataclass(slots=True, frozen=True)
class FieldPlan:
    """A field's plan: its codecs and its place in JSON.

    `own` is a codec of a type that writes itself (Time, Quantity, ...), `scalar` one of a scalar; a
    sub-message has neither and `message` is its full name.
    """

    name: str
    json_name: str
    label: str
    message: str
    scalar: scalars.ScalarCodec | None
    zero: Value
    """What a null in a list or map of scalars is, as in Go."""
    own: scalars.OwnCodec | None
    always: bool
    pointer: bool
    inline: bool
    omit_zero: bool
    plain: scalars.ScalarCodec | None
    """The codec of a scalar that is neither a pointer nor a list; most fields are one of these two kinds."""
    nullable: bool
    """A pointer that is written as a field of its own."""


@dataclass(slots=True, frozen=True)
class MessagePlan:
    """A message's plan: its fields in the order of JSON."""

    full_name: str
    fields: tuple[FieldPlan, ...]
    by_json: dict[str, tuple[FieldPlan, ...]]
    """A JSON key's way into the message: more than one step where a Go struct is inlined."""


_plans: dict[str, MessagePlan] = {}


def _field_plan(owner: str, field: Field) -> FieldPlan:
    scalar = scalars.SCALARS[field.type] if field.is_scalar else None
    single = field.label == "optional"
    return FieldPlan(
        name=field.name,
        json_name=field.json_name,
        label=field.label,
        message="" if field.is_scalar else field.type,
        scalar=scalar,
        zero={"string": "", "bool": False, "bytes": b""}.get(field.type, 0),
        own=scalars.OWN.get(field.type),
        always=field.always,
        pointer=field.pointer,
        inline=field.inline,
        # The one struct field of ours with Go's `omitzero`.
        omit_zero=field.name == "creationTimestamp" and owner.endswith(".ObjectMeta"),
        plain=scalar if single and not field.pointer else None,
        nullable=single and field.pointer and not field.inline,
    )


def plan_of(full_name: str) -> MessagePlan:
    """Return the plan of a type of messages."""
    plan = _plans.get(full_name)
    if plan is None:
        fields = tuple(_field_plan(full_name, field) for field in messages()[full_name].fields)
        fields = tuple(f for f in fields if f.json_name or f.inline)
        by_json: dict[str, tuple[FieldPlan, ...]] = {}
        for field in fields:
            if field.inline:
                for key, path in plan_of(field.message).by_json.items():
                    by_json.setdefault(key, (field, *path))
            else:
                by_json[field.json_name] = (field,)
        plan = _plans[full_name] = MessagePlan(full_name, fields, by_json)
    return plan


# --- to JSON ---


def _value_to_json(field: FieldPlan, value: Value) -> Json:
    if field.scalar is not None:
        return field.scalar.to_json(value)
    if field.own is not None:
        return field.own.to_json(value)
    return _message_to_json(value, field.message)


def _message_to_json(message: Value, full_name: str) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for field in plan_of(full_name).fields:
        name, key = field.name, field.json_name
        if field.plain is not None:
            value = getattr(message, name)
            if value or field.always:
                out[key] = field.plain.to_json(value)
        elif field.nullable:
            if message.HasField(name):
                out[key] = _value_to_json(field, getattr(message, name))
            elif field.always:
                out[key] = None
        elif field.label == "repeated":
            items = getattr(message, name)
            if items:
                out[key] = [_value_to_json(field, item) for item in items]
            elif field.always:
                out[key] = None
        elif field.label == "map":
            entries = getattr(message, name)
            if entries:
                out[key] = {k: _value_to_json(field, entries[k]) for k in sorted(entries)}
            elif field.always:
                out[key] = None
        elif field.inline:
            if message.HasField(name) or not field.pointer:
                out.update(_message_to_json(getattr(message, name), field.message))
        else:
            written = _value_to_json(field, getattr(message, name))
            if written is not None or not field.omit_zero:
                out[key] = written
    return out


def to_json(message: Message) -> dict[str, Json]:
    """Return the Kubernetes JSON of a message; top-level objects get their apiVersion and kind."""
    full_name = message.DESCRIPTOR.full_name
    body = _message_to_json(message, full_name)
    try:
        kind = kinds.of(message)
    except KeyError:
        return body
    return {"kind": kind.kind, "apiVersion": kind.api_version, **body}


# --- from JSON ---


def _into_message(
    message: Value, full_name: str, data: Json, path: str, unknown: Callable[[str], None]
) -> None:
    # The check of an abstract class is slow.
    if not isinstance(data, dict) and not isinstance(data, Mapping):
        raise DecodeError(path, f"expected an object, got {scalars.json_type(data)}")
    by_json = plan_of(full_name).by_json
    for key, value in data.items():
        where = f"{path}.{key}" if path else str(key)
        way = by_json.get(key)
        if way is None:
            unknown(where)
            continue
        if value is None:
            continue
        target = message
        for step in way[:-1]:
            target = getattr(target, step.name)
            target.SetInParent()
        _into_field(target, way[-1], value, where, unknown)


def _into_field(
    message: Value, field: FieldPlan, value: Json, path: str, unknown: Callable[[str], None]
) -> None:
    if field.label == "repeated":
        if not isinstance(value, list):
            raise DecodeError(path, f"expected an array, got {scalars.json_type(value)}")
        target = getattr(message, field.name)
        for index, item in enumerate(value):
            where = f"{path}[{index}]"
            if field.scalar is not None:
                target.append(field.zero if item is None else field.scalar.from_json(item, where))
            elif field.own is not None:
                field.own.from_json(item, target.add(), where)
            else:
                _into_message(target.add(), field.message, {} if item is None else item, where, unknown)
    elif field.label == "map":
        if not isinstance(value, Mapping):
            raise DecodeError(path, f"expected an object, got {scalars.json_type(value)}")
        target = getattr(message, field.name)
        for key, item in value.items():
            where = f"{path}.{key}"
            if not isinstance(key, str):
                raise DecodeError(path, f"expected string keys, got {scalars.json_type(key)}")
            if field.scalar is not None:
                target[key] = field.zero if item is None else field.scalar.from_json(item, where)
            elif field.own is not None:
                field.own.from_json(item, target[key], where)
            else:
                _into_message(target[key], field.message, {} if item is None else item, where, unknown)
    elif field.scalar is not None:
        setattr(message, field.name, field.scalar.from_json(value, path))
    else:
        target = getattr(message, field.name)
        target.SetInParent()
        if field.own is not None:
            field.own.from_json(value, target, path)
        else:
            _into_message(target, field.message, value, path, unknown)


def from_json(
    message_type: type[_M],
    data: Mapping[str, Json],
    *,
    strict: bool = False,
    unknown_fields: list[str] | None = None,
) -> _M:
    """Return a message from Kubernetes JSON.

    Fields that the table does not have are dropped, as an API server does; `strict` makes the first one an
    error and `unknown_fields`, if given, gets the path of each.

    Raises:
        DecodeError: a value does not fit its field; has the field's path.
    """

    def unknown(path: str) -> None:
        if strict:
            raise DecodeError(path, "unknown field")
        if unknown_fields is not None:
            unknown_fields.append(path)

    message = message_type()
    body = {key: value for key, value in data.items() if key not in ("kind", "apiVersion")}
    own_fields = plan_of(message.DESCRIPTOR.full_name).by_json
    if "kind" in own_fields or "apiVersion" in own_fields:
        body = dict(data)
    _into_message(message, message.DESCRIPTOR.full_name, body, "", unknown)
    return message
