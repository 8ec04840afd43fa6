"""A message as Go prints its internal structure in an error: every field, by its Go name.

Upstream's internal types have no JSON names, so a refused structure is shown with capitals, with null for
what is not set, and the fields in the order of the internal type (`internal_types.py`).
Source: k8s.io/apimachinery/pkg/util/validation/field 1.36 (Error.ErrorBody).
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from nominee.apiserver.validation import internal_types
from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from nominee.machinery.wire.schema import Field, messages
from nominee.machinery.wire.values import scalars

# Of packages whose Go types are the API's own, which do have JSON names.
_PUBLIC = "k8s.io.apimachinery."
_POD_SPEC = core.PodSpec.DESCRIPTOR.full_name


def dump(message: Message) -> Any:
    """Return the message as data, with the names and the order of the fields of its Go struct."""
    full_name = message.DESCRIPTOR.full_name
    own = scalars.OWN.get(full_name)
    if own is not None:
        return own.to_json(message)
    described = messages().get(full_name)
    if full_name.startswith(_PUBLIC) or described is None:
        return codec.to_json(message)
    made: dict[str, Any] = {}
    for field in described.fields:
        value = _value(message, field)
        # Go embeds the metadata without a name of its own.
        if (field.inline or field.name == "metadata") and isinstance(value, dict):
            made |= value
        else:
            made[field.go_name] = value
    security_context = dump(core.PodSecurityContext()) if full_name == _POD_SPEC else None
    return internal_types.in_order(full_name, made, security_context)


def _value(message: Message, field: Field) -> Any:
    value = getattr(message, field.name)
    if field.label == "repeated":
        shown = [each if field.is_scalar else dump(each) for each in value]
        return shown or None
    if field.label == "map":
        return {key: value[key] if field.is_scalar else dump(value[key]) for key in sorted(value)} or None
    pointer = field.pointer and (message.DESCRIPTOR.full_name, field.name) not in internal_types.NOT_POINTERS
    if pointer and not message.HasField(field.name):
        return None
    return value if field.is_scalar else dump(value)
