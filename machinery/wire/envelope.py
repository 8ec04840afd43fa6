"""The wrapping of an object where it is stored or sent: `k8s\\0`, then a runtime.Unknown.

Measured on kube-apiserver 1.36.2: field 1 is the TypeMeta, field 2 the object's bytes, and the empty
contentEncoding and contentType are always written at the end. A stored object has no resourceVersion; readers
get it from the key's mod_revision. `with_resource_version` puts it in without decoding: protobuf merges
repeated occurrences of a sub-message, so a second, partial `metadata` behind the object's bytes is enough.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from nominee.machinery.api.kinds import AnyKind, Kind, of
from nominee.machinery.api.pb import runtime
from nominee.machinery.wire import presence

MAGIC = b"k8s\x00"
_TAIL = b"\x1a\x00\x22\x00"
_RAW_TAG = 0x12
_M = TypeVar("_M", bound=Message)


class EnvelopeError(ValueError):
    """The bytes are no `k8s\\0` envelope, or hold another kind than asked for."""


def varint(value: int) -> bytes:
    """Return a number of at least 0 in protobuf's base-128 form."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


@cache
def _head(api_version: str, kind: str) -> bytes:
    type_meta = runtime.TypeMeta(apiVersion=api_version, kind=kind).SerializeToString()
    return MAGIC + b"\x0a" + varint(len(type_meta)) + type_meta + bytes([_RAW_TAG])


def wrap(kind: AnyKind, raw: bytes) -> bytes:
    """Return the envelope around an object's own bytes."""
    return wrap_as(kind.api_version, kind.kind, raw)


def wrap_as(api_version: str, kind: str, raw: bytes) -> bytes:
    """Return the envelope around the bytes of an object that has no `Kind` row (lists, Status)."""
    return _head(api_version, kind) + varint(len(raw)) + raw + _TAIL


def _raw_span(data: bytes) -> tuple[int, int, int]:
    """Return the place of `raw`: (offset of its tag, offset of its first byte, offset behind it)."""
    if data[:5] != MAGIC + b"\x0a":
        raise EnvelopeError("not a Kubernetes protobuf envelope: it must start with k8s\\0 and a TypeMeta")
    try:
        length, at = _read_varint(data, 5)
        tag = at + length
        if data[tag] != _RAW_TAG:
            raise EnvelopeError("a Kubernetes protobuf envelope without raw bytes")
        length, start = _read_varint(data, tag + 1)
    except IndexError:
        raise EnvelopeError("a truncated Kubernetes protobuf envelope") from None
    if start + length > len(data):
        raise EnvelopeError("a truncated Kubernetes protobuf envelope")
    return tag, start, start + length


def unwrap(data: bytes) -> tuple[str, str, bytes]:
    """(apiVersion, kind, the object's own bytes); EnvelopeError for anything else."""
    if data[:4] != MAGIC:
        # The API server's words (apimachinery 1.36, serializer/protobuf).
        problem = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        raise EnvelopeError(problem if data else "empty data")
    try:
        unknown = runtime.Unknown.FromString(data[4:])
    except DecodeError as error:
        raise EnvelopeError(f"a broken Kubernetes protobuf envelope: {error}") from None
    api_version, kind = unknown.typeMeta.apiVersion, unknown.typeMeta.kind
    # A proto2 string that is no UTF-8 comes as bytes.
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise EnvelopeError("a broken Kubernetes protobuf envelope: its TypeMeta is no text")
    return api_version, kind, unknown.raw


def with_resource_version(data: bytes, revision: int) -> bytes:
    """Return the same envelope with metadata.resourceVersion set; the object is not decoded."""
    tag, start, end = _raw_span(data)
    text = str(revision).encode()
    meta_size = len(text) + 2
    patch = b"\x0a" + bytes([meta_size, 0x32, len(text)]) + text
    size = varint(end - start + len(patch))
    return b"".join((data[: tag + 1], size, data[start:end], patch, data[end:]))


def encode(obj: Message, kind: AnyKind | None = None) -> bytes:
    """Return an object as a real API server would store or send it; fills presence in `obj` itself.

    `kind` is for objects that are not stored, such as reviews.
    """
    presence.fill(obj)
    return wrap(kind or of(obj), obj.SerializeToString(deterministic=True))


def decode(kind: Kind[_M], data: bytes) -> _M:
    """Return the object in an envelope.

    Raises:
        EnvelopeError: it is another kind or cannot be decoded.
    """
    try:
        return kind.message.FromString(raw_of(kind, data))
    except DecodeError as error:
        raise EnvelopeError(f"{kind.kind}: {error}") from None


def raw_of(kind: AnyKind, data: bytes) -> bytes:
    """Return the object's own bytes in an envelope. Raises: EnvelopeError when it is another kind."""
    if data.startswith(_head(kind.api_version, kind.kind)):
        _, start, end = _raw_span(data)
        return data[start:end]
    api_version, name, raw = unwrap(data)
    if (api_version, name) != (kind.api_version, kind.kind):
        raise EnvelopeError(f"expected {kind.api_version} {kind.kind}, got {api_version} {name}")
    return raw
