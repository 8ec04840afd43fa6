"""One version of an object: bytes that are passed on, and a message that is decoded when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire import envelope


class CachedObject:
    """An object at a revision.

    `stored` is the value in etcd, which has no resourceVersion. `prune` returns it without the fields that
    the emulated version does not have; it is None for a kind that has all its fields. The other forms are
    made on first use, from what `prune` returns. `message` is shared by all users: never change it.

    Raises: EnvelopeError on first use, when `stored` is not an envelope.
    """

    __slots__ = (
        "_converted",
        "_data",
        "_fields",
        "_message",
        "_prune",
        "kind",
        "name",
        "namespace",
        "revision",
        "stored",
    )

    def __init__(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        revision: int,
        *,
        stored: bytes,
        message: Message | None = None,
        prune: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.revision = revision
        self.stored = stored
        self._data: bytes | None = None
        self._message = message
        self._prune = prune
        self._fields: Mapping[str, str] | None = None
        self._converted: CachedObject | None = None

    @property
    def key(self) -> str:
        """The object's key in etcd."""
        return self.kind.key(self.namespace, self.name)

    @property
    def data(self) -> bytes:
        """The envelope with metadata.resourceVersion set to `revision`, as clients get it."""
        data = self._data
        if data is None:
            stored = self.stored if self._prune is None else self._prune(self.stored)
            data = self._data = envelope.with_resource_version(stored, self.revision)
        return data

    @property
    def message(self) -> Any:
        """The decoded object with its resourceVersion; shared, never change it."""
        message = self._message
        if message is None:
            message = self._message = envelope.decode(self.kind, self.data)
        return message

    @property
    def labels(self) -> Mapping[str, str]:
        """The object's metadata.labels, for label selectors."""
        labels: Mapping[str, str] = self.message.metadata.labels
        return labels

    def field_values(self, values_of: Callable[[Any], Mapping[str, str]]) -> Mapping[str, str]:
        """Return the object's selectable fields, computed once by `values_of`: one function for each kind."""
        fields = self._fields
        if fields is None:
            fields = self._fields = values_of(self.message)
        return fields

    def at_revision(self, revision: int) -> CachedObject:
        """Return the same object with another resourceVersion: the last state of a deleted object."""
        return CachedObject(
            self.kind, self.namespace, self.name, revision, stored=self.stored, prune=self._prune
        )

    def converted(self, convert: Callable[[CachedObject], CachedObject]) -> CachedObject:
        """Return this object through `convert`, made once: one function for each kind."""
        converted = self._converted
        if converted is None:
            converted = self._converted = convert(self)
        return converted

    def slim(self) -> None:
        """Drop decoded forms; for versions that are kept only as past events."""
        self._data = None
        self._message = None
        self._fields = None
        self._converted = None

    def __repr__(self) -> str:
        return f"<CachedObject {self.key} @{self.revision}>"


def never_stored(kind: AnyKind, message: Message, namespace: str = "", name: str = "") -> CachedObject:
    """Return a message that is never stored (a review, a TokenRequest) as an object; fills its presence."""
    return CachedObject(kind, namespace, name, 0, stored=envelope.encode(message, kind), message=message)
