"""JSON, YAML and protobuf as a Go server writes them."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.message import Message

from nominee.machinery.api.pb import runtime
from nominee.machinery.wire import presence
from nominee.machinery.wire.envelope import MAGIC

_ESCAPES = (
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("&", "\\u0026"),
    ("\u2028", "\\u2028"),
    ("\u2029", "\\u2029"),
)


def dump(document: Any, *, pretty: bool = False) -> str:
    """Return JSON without a final newline; HTML characters are escaped, as Go's encoder does."""
    if pretty:
        text = json.dumps(document, indent=2, ensure_ascii=False)
    else:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return escape(text)


def escape(text: str) -> str:
    """Return JSON with the HTML characters in its texts escaped."""
    for character, escaped in _ESCAPES:
        if character in text:
            text = text.replace(character, escaped)
    return text


def dump_bytes(document: Any, *, pretty: bool = False) -> bytes:
    """Return `dump` with the newline, as the body of a response."""
    return dump(document, pretty=pretty).encode() + b"\n"


def dump_yaml(document: Any) -> bytes:
    """Return YAML with sorted keys."""
    from nominee.machinery.wire.files import manifests

    return manifests.dump_yaml(document).encode()


def wrap(api_version: str, kind: str, raw: bytes) -> bytes:
    """Return the protobuf envelope of an object without a `Kind` row (lists, Status, reviews)."""
    unknown = runtime.Unknown(raw=raw, contentEncoding="", contentType="")
    unknown.typeMeta.apiVersion = api_version
    unknown.typeMeta.kind = kind
    return MAGIC + unknown.SerializeToString()


def wrap_message(api_version: str, kind: str, message: Message) -> bytes:
    """Return `wrap` of a message; fills presence in it."""
    presence.fill(message)
    return wrap(api_version, kind, message.SerializeToString(deterministic=True))
