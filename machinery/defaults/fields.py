"""Set the fields that a client has omitted. The pod's defaults, which every pod passes, do it by hand."""

from __future__ import annotations

from google.protobuf.message import Message


def set_absent(message: Message, **values: object) -> None:
    """Set each of these fields that is not there: Go's pointers."""
    for name, value in values.items():
        if not message.HasField(name):
            setattr(message, name, value)


def set_empty(message: Message, **values: object) -> None:
    """Set each of these fields that has its type's zero value, there or not."""
    for name, value in values.items():
        if not getattr(message, name):
            setattr(message, name, value)
