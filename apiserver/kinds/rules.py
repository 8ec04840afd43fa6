"""One row per kind: everything that the API server's other parts ask of it.

The row is the last definition of a kind's file, `apiserver/kinds/<group>/<kind>.py`, beside its strategy,
validation and columns. `nominee.apiserver.kinds.table` collects the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from nominee.apiserver.kinds.strategy import Strategy
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.selectable_fields import METADATA, SelectableFields
from nominee.apiserver.printing.columns import Columns
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Version
from nominee.machinery.wire import presence

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Unvalidated:
    """The reason why a kind has no validation of its own."""

    reason: str


class DeleteResponse(Enum):
    """The body of the response to a DELETE that removed the object (upstream: ReturnDeletedObject)."""

    STATUS = auto()
    OBJECT = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Conversion(Generic[M]):
    """The two views of a kind that shares its objects with a kind of another API (`kinds.STORED_AS`).

    `show` has to be one function per kind: watch events are cached by it.
    """

    to_stored: Callable[[Any], M]
    show: Callable[[CachedObject], CachedObject]


@dataclass(frozen=True, slots=True)
class Deprecation:
    """The version that deprecates a kind, and the kind to use instead."""

    since: Version
    successor: AnyKind


class IncompleteRules(TypeError):
    """A row does not say how its kind is validated."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KindRules(Generic[M]):
    """The rules of one kind; `M` is the message of the stored kind.

    Raises: IncompleteRules where the strategy validates nothing and `unvalidated` does not say why.
    """

    kind: AnyKind
    strategy: Strategy[M]
    """How objects are prepared, validated and changed, with a strategy for each subresource."""
    columns: Columns[M]
    fields: SelectableFields[M] = METADATA
    delete_response: DeleteResponse = DeleteResponse.STATUS
    conversion: Conversion[M] | None = None
    read_your_write: bool = False
    """A write is answered when the watch cache has it: rules of other requests read this kind from there."""
    created_by_update: bool = False
    """A PUT of a name that does not exist creates the object (AllowCreateOnUpdate)."""
    needs_resource_version: bool = False
    """A PUT without a resourceVersion is refused (not AllowUnconditionalUpdate)."""
    takes_addresses: bool = False
    """A write allocates cluster addresses and node ports, and a DELETE releases them (registry/services)."""
    has_content: bool = False
    """A DELETE waits until a controller has removed the content; not to be deleted by collection."""
    fill: Callable[[M], None] = presence.fill
    """Sets, in place, the fields that Go always writes."""
    limits_own_size: bool = False
    """Validation limits the size of the data, below the limit for all objects and with another message."""
    deprecation: Deprecation | None = None
    unvalidated: Unvalidated | None = None

    def __post_init__(self) -> None:
        validates = type(self.strategy).validate is not Strategy.validate
        if validates == (self.unvalidated is not None):
            problem = "is validated, but its rules say Unvalidated" if validates else "has no validation"
            raise IncompleteRules(f"{self.kind!r} {problem}; see apiserver.kinds.rules.Unvalidated")
