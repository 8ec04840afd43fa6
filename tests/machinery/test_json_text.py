"""JSON made of serialized messages: the text of the codec."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core, meta
from nominee.machinery.wire import codec, envelope, json_text, presence
from nominee.machinery.wire.schema import messages

GOLDEN = Path(__file__).parents[1] / "golden"
VALUES = [
    value
    for value in json.loads((GOLDEN / "etcd_values.json").read_text())
    if value["enc"] == "protobuf" and kinds.by_kind(*value["gvk"].rsplit("/", 1))
]
RAW = ("FieldsV1", "RawExtension")
DEPTH_MAX = 7
TEXTS = ("", "a", "x" * 200, 'a "quote" \\', "<&>", "\u2028 é 漢 \x00\x7f", "10Mi", "1")
NUMBERS = (0, 1, -1, 127, 128, 300, 2**31 - 1, -(2**31))


def through_codec(message: Message) -> str:
    body = codec.to_json(message)
    body.pop("kind", None), body.pop("apiVersion", None)
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)[1:-1]


def same(message: Message, raw: bytes) -> None:
    assert json_text.members(type(message), raw) == through_codec(type(message).FromString(raw))


def fill(message: Message, rng: random.Random, depth: int = 0) -> None:
    """Set about half of the fields of a message to random values."""
    if message.DESCRIPTOR.name in RAW:
        setattr(
            message,
            message.DESCRIPTOR.fields[0].name,
            rng.choice((b"", b'{ "f:a" : {".":{}},"b":"\\u00e9"}', b"null")),
        )
        return
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.5 or (depth > DEPTH_MAX and field.message_type is not None):
            continue
        target: Any = message if not field.is_repeated else getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            for key in rng.sample(("b", "a", "a<b", "é"), 2):
                if value.message_type is None:
                    target[key] = scalar(value, rng)
                else:
                    fill(target[key], rng, depth + 1)
        elif field.is_repeated:
            for _ in range(rng.randrange(3)):
                if field.message_type is None:
                    target.append(scalar(field, rng))
                else:
                    fill(target.add(), rng, depth + 1)
        elif field.message_type is None:
            setattr(message, field.name, scalar(field, rng))
        else:
            getattr(message, field.name).SetInParent()
            fill(getattr(message, field.name), rng, depth + 1)


def scalar(field: Any, rng: random.Random) -> Any:
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return rng.choice(TEXTS)
        case FieldDescriptor.TYPE_BYTES:
            return rng.choice((b"", b"\x00\xff", b"abc"))
        case FieldDescriptor.TYPE_BOOL:
            return rng.random() < 0.5
        case FieldDescriptor.TYPE_INT64:
            return rng.choice((*NUMBERS, 2**63 - 1, -(2**63)))
        case FieldDescriptor.TYPE_INT32:
            return rng.choice(NUMBERS)
    raise AssertionError(field.type)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value["key"])
def test_stored_values(value: dict[str, str]) -> None:
    kind = kinds.by_kind(*value["gvk"].rsplit("/", 1))
    assert kind is not None
    # A second, partial metadata stands behind the object's bytes.
    data = envelope.with_resource_version(bytes.fromhex(value["hex"]), 12345)
    same(envelope.decode(kind, data), envelope.raw_of(kind, data))


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: f"{kind.group_resource}.{kind.version}")
def test_any_message_of_a_kind(kind: Any) -> None:
    rng = random.Random(kind.group_resource)
    for _ in range(20):
        message = kind.message()
        fill(message, rng)
        same(message, message.SerializeToString())
        presence.fill(message)
        same(message, message.SerializeToString())
        # Bytes behind one another are one merged message.
        other = kind.message()
        fill(other, rng)
        same(message, message.SerializeToString() + other.SerializeToString())


def test_packed_numbers_unknown_fields_and_empty_messages() -> None:
    security = core.PodSecurityContext(runAsUser=-1, supplementalGroups=[1, 300])
    packed = b"\x22\x03\x01\xac\x02"
    same(security, core.PodSecurityContext(runAsUser=-1).SerializeToString() + packed)
    same(core.Pod(), b"")
    same(core.Pod(), b"\xfa\x3f\x01a")
    same(meta.ObjectMeta(), b"")


@pytest.mark.parametrize("raw", [b"\x0a", b"\x0a\x05a", b"\x0a\x80", b"\x0b\x0c", b"\x80"])
def test_broken_bytes(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        json_text.members(core.Pod, raw)


def test_no_inlined_field_has_the_name_of_another() -> None:
    """The text of a member is written once, where a dict would keep the last one."""
    for name in messages():
        names = [
            key
            for field in codec.plan_of(name).fields
            for key in (codec.plan_of(field.message).by_json if field.inline else (field.json_name,))
        ]
        assert len(names) == len(set(names)), name
