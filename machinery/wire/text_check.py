"""Whether the texts of a message are texts.

proto2's parsers do not look at them, and a string field of other bytes is `bytes` in Python, which nobody
expects. Go's reader refuses such a message nowhere either; here it is refused at the door.
"""

from __future__ import annotations

import re
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

# In the text form a byte that is no ASCII is \2xx or \3xx; made in C, it is five times as fast as a walk.
_HIGH = re.compile(r"\\[23]")
_STRING, _MESSAGE = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE


def has_broken_text(message: Message) -> bool:
    """Whether a string of the message, or of one inside it, is no UTF-8."""
    try:
        return _HIGH.search(str(message)) is not None and _broken(message)
    except UnicodeDecodeError:
        # A map's key.
        return True


def _broken(message: Message) -> bool:
    for field, value in message.ListFields():
        if field.type == _STRING:
            if any(isinstance(text, bytes) for text in _values(value)):
                return True
        elif field.type == _MESSAGE and any(_is_broken(each) for each in _values(value)):
            return True
    return False


def _is_broken(value: Any) -> bool:
    return _broken(value) if isinstance(value, Message) else isinstance(value, bytes)


def _values(value: Any) -> Any:
    """Of a field: one, a list's, or a map's keys and values."""
    if isinstance(value, str | bytes | Message):
        return (value,)
    if hasattr(value, "items"):
        return [part for key in value for part in (key, value[key])]
    return value
