"""Check the texts, quantities and JSON of a protobuf body, which the parser does not.

proto2's parsers do not check texts (a string field of other bytes is `bytes` in Python), quantities, or JSON
inside of bytes. The API server refuses such a body here; Go's decoder does so for quantities.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from nominee.machinery.resources.quantity import Quantity, QuantityError

# The text form is made in C, and looking for what may be wrong in it is far quicker than a walk: a byte that
# is no ASCII is \2xx or \3xx there, a quantity a field `string`, JSON a field `raw` or `Raw`.
_QUANTITIES = re.compile(r'string: "([^"]*)"')
_PLAIN = re.compile(r"([+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,9})?)?", re.ASCII)
_STRING = FieldDescriptor.TYPE_STRING
_QUANTITY = "k8s.io.apimachinery.pkg.api.resource.Quantity"
_RAW = {
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "raw",
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": "Raw",
}


def unreadable(message: Message) -> str:
    """Return the path and the problem of a message's first unreadable text, or ""."""
    try:
        return next(_problems(message), "") if _suspicious(str(message)) else ""
    except UnicodeDecodeError:
        # A map's key.
        return _NO_TEXT


_NO_TEXT = "a string field contains invalid UTF-8"


def _suspicious(text: str) -> bool:
    if "\\2" in text or "\\3" in text or 'aw: "' in text:
        return True
    return not all(map(_is_plain, _QUANTITIES.findall(text)))


@lru_cache(maxsize=4096)
def _is_plain(quantity: str) -> bool:
    return _PLAIN.fullmatch(quantity) is not None


def _problems(message: Message) -> Iterator[str]:
    name = message.DESCRIPTOR.full_name
    if name == _QUANTITY:
        yield from _quantity(getattr(message, "string", ""))
        return
    if name in _RAW:
        yield from _json(getattr(message, _RAW[name]))
        return
    for field, value in message.ListFields():
        entry = field.message_type
        if field.type == _STRING:
            if any(
                isinstance(text, bytes) for text in ((value,) if isinstance(value, str | bytes) else value)
            ):
                yield _NO_TEXT
        elif entry is not None and entry.GetOptions().map_entry:
            texts = entry.fields_by_name["value"].type == _STRING
            for key in value:
                inner = value[key]
                if isinstance(key, bytes) or (texts and isinstance(inner, bytes)):
                    yield _NO_TEXT
                elif isinstance(inner, Message):
                    yield from _problems(inner)
        elif entry is not None:
            for each in (value,) if isinstance(value, Message) else value:
                yield from _problems(each)


def _quantity(text: Any) -> Iterator[str]:
    if isinstance(text, bytes):
        yield _NO_TEXT
    elif text:
        try:
            Quantity.parse(text)
        except QuantityError as error:
            yield str(error)


def _json(data: bytes) -> Iterator[str]:
    if data:
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            yield "a field that holds JSON does not"
