"""Bodies of gRPC requests: envelopes as messages."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from nominee.machinery.api import errors
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core, meta
from nominee.machinery.runtime.memo import CachedRule
from nominee.machinery.wire import envelope
from nominee.machinery.wire.text_check import unreadable

M = TypeVar("M", bound=Message)


def decode(kind: Kind[M], body: bytes) -> M:
    """Return the message in a body. Raises: StatusError 400 where it is no `kind`."""
    try:
        message = envelope.decode(kind, body)
        _check_text(message)
        return message
    except (envelope.EnvelopeError, DecodeError) as error:
        raise errors.bad_request(f"the body cannot be understood: {error}") from None


_unreadable_spec = CachedRule[core.PodSpec, str](unreadable)


def _check_text(message: Message) -> None:
    """Check that all texts are UTF-8. Raises: DecodeError."""
    if isinstance(message, core.Pod):
        problem = unreadable(message.metadata) or _unreadable_spec(message.spec)
        if not problem and message.HasField("status"):
            problem = unreadable(message.status)
    else:
        problem = unreadable(message)
    if problem:
        raise DecodeError(problem)


def delete_options(data: bytes) -> meta.DeleteOptions:
    """Return the options of a delete. Raises: StatusError 400."""
    try:
        options = meta.DeleteOptions.FromString(data)
        _check_text(options)
        return options
    except DecodeError as error:
        raise errors.bad_request(f"the delete options cannot be understood: {error}") from None
