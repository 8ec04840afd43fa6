"""JSON, YAML and protobuf as a Go server writes them."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.message import Message

from nominee.apiserver.validation.field import for_html
from nominee.machinery.wire import envelope, presence


def dump(document: Any, *, pretty: bool = False) -> str:
    """Return JSON without a final newline; HTML characters are escaped, as Go's encoder does."""
    if pretty:
        text = json.dumps(document, indent=2, ensure_ascii=False)
    else:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return for_html(text)


def dump_bytes(document: Any, *, pretty: bool = False) -> bytes:
    """Return `dump` with the newline, as the body of a response."""
    return dump(document, pretty=pretty).encode() + b"\n"


def dump_yaml(document: Any) -> bytes:
    """Return YAML with sorted keys."""
    from nominee.machinery.wire.files import manifests

    return manifests.dump_yaml(document).encode()


def wrap_message(api_version: str, kind: str, message: Message) -> bytes:
    """Return the protobuf envelope of a message that has no `Kind` row; fills presence in it."""
    presence.fill(message)
    return envelope.wrap_as(api_version, kind, message.SerializeToString(deterministic=True))
