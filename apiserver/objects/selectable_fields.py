"""The selectable fields of a kind, and their values.

Source: kube-apiserver 1.36, the field label conversions and selectable fields of each kind; tests/golden
(api_list.jsonl, family field).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from nominee.machinery.api.names import go_quote
from nominee.machinery.api.objects import metadata_of

M_contra = TypeVar("M_contra", bound=Message, contravariant=True)


class UnknownFieldLabel(ValueError):
    """A field selector with a label that the kind does not support; the text is upstream's."""


def _unknown(label: str) -> str:
    return f"field label not supported: {label}"


@dataclass(frozen=True, slots=True, eq=False)
class SelectableFields(Generic[M_contra]):
    """The selectable fields of a kind.

    `values` returns those of an object; `labels` maps the label in a selector to a key of `values`; `unknown`
    returns the error text for another label (upstream's kinds word it differently).
    """

    values: Callable[[M_contra], Mapping[str, str]]
    labels: Mapping[str, str]
    unknown: Callable[[str], str] = _unknown

    def key_of(self, label: str) -> str:
        """Return the key of `values` for the label of a selector.

        Raises: UnknownFieldLabel.
        """
        key = self.labels.get(label)
        if key is None:
            raise UnknownFieldLabel(self.unknown(label))
        return key


def selectable(
    message: type[M_contra],
    values: Callable[[M_contra], Mapping[str, str]],
    *,
    aliases: Mapping[str, str] | None = None,
    unknown: Callable[[str], str] = _unknown,
) -> SelectableFields[M_contra]:
    """Return fields with the labels that `values` returns for an empty object, and `aliases` of them."""
    labels = {key: key for key in values(message())}
    return SelectableFields(values, {**labels, **(aliases or {})}, unknown)


def metadata_fields(obj: Message) -> dict[str, str]:
    """Return the fields that most kinds can be selected by: name and namespace."""
    metadata = metadata_of(obj)
    return {"metadata.name": metadata.name, "metadata.namespace": metadata.namespace}


def bool_text(value: bool) -> str:
    """Return a boolean as selectors write it."""
    return "true" if value else "false"


_METADATA_LABELS = ("metadata.name", "metadata.namespace")


def _only_metadata(label: str) -> str:
    quoted = ", ".join(f'"{name}"' for name in _METADATA_LABELS)
    return f"{go_quote(label)} is not a known field selector: only {quoted}"


METADATA: SelectableFields[Message] = SelectableFields(
    metadata_fields, {name: name for name in _METADATA_LABELS}, _only_metadata
)
"""The selectable fields of kinds without fields of their own."""
