"""Whether two messages mean the same: quantities are compared by their value, not by their text.

Source: k8s.io/apimachinery/pkg/api/equality 1.36 (Semantic), by which upstream judges what may not change.
"""

from __future__ import annotations

from google.protobuf.message import Message

from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import resource
from nominee.machinery.resources.quantity import Quantity


def same(one: Message, other: Message) -> bool:
    """Return whether two messages of one type mean the same; equal messages are found without a walk."""
    return bool(one == other or _plain(one) == _plain(other))


def _plain(message: Message) -> Message:
    copy = copy_of(message)
    _normalize(copy)
    return copy


def _normalize(message: Message) -> None:
    """In place: each quantity as its exact value."""
    if isinstance(message, resource.Quantity):
        exact = Quantity.parse(message.string or "0").decimal()
        message.string = exact.rstrip("0").rstrip(".") if "." in exact else exact
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.message_type.GetOptions().map_entry:
            if descriptor.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    _normalize(value[key])
        elif hasattr(value, "DESCRIPTOR"):
            _normalize(value)
        else:
            for each in value:
                _normalize(each)
