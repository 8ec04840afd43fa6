"""Bodies of requests: envelopes as messages."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError, Message
from k8s.io.api.authentication.v1 import generated_pb2 as authentication
from k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling

from machinery.api import errors
from machinery.api.kinds import Kind
from machinery.api.pb import core, meta, policy
from machinery.runtime.memo import CachedRule
from machinery.wire import envelope
from machinery.wire.text_check import unreadable

# Subresources whose body is an object of its own.
_SUBRESOURCE_BODIES: dict[str, tuple[str, str, type[Message]]] = {
    "binding": ("v1", "Binding", core.Binding),
    "eviction": ("policy/v1", "Eviction", policy.Eviction),
    "scale": ("autoscaling/v1", "Scale", autoscaling.Scale),
    "token": ("authentication.k8s.io/v1", "TokenRequest", authentication.TokenRequest),
}


def decode(kind: Kind[Any], subresource: str, body: bytes) -> Message:
    """The message in a request's body; StatusError 400 for anything else."""
    try:
        own = _SUBRESOURCE_BODIES.get(subresource)
        if own is None:
            return _readable(envelope.decode(kind, body))
        api_version, name, message_type = own
        found_version, found_name, raw = envelope.unwrap(body)
        if (found_version, found_name) != (api_version, name):
            raise envelope.EnvelopeError(f"expected {api_version} {name}, got {found_version} {found_name}")
        return _readable(message_type.FromString(raw))
    except (envelope.EnvelopeError, DecodeError) as error:
        raise errors.bad_request(f"the body cannot be understood: {error}") from None


_unreadable_spec = CachedRule[core.PodSpec, str](unreadable)


def _readable(message: Message) -> Message:
    if isinstance(message, core.Pod):
        problem = unreadable(message.metadata) or _unreadable_spec(message.spec)
        if not problem and message.HasField("status"):
            problem = unreadable(message.status)
    else:
        problem = unreadable(message)
    if problem:
        raise DecodeError(problem)
    return message


def delete_options(data: bytes) -> meta.DeleteOptions:
    """A delete's options; StatusError 400 for bytes that are none."""
    try:
        options = meta.DeleteOptions.FromString(data)
        _readable(options)
        return options
    except DecodeError as error:
        raise errors.bad_request(f"the delete options cannot be understood: {error}") from None
