"""One write of one key in etcd: the stored values before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

from google.protobuf.message import Message

from nominee.machinery.api.kinds import AnyKind, Kind
from nominee.machinery.wire import envelope

_M = TypeVar("_M", bound=Message)


class StoredObject:
    """A value of etcd; it is decoded when it is first read, and all readers share the message.

    Do not change the message. Its metadata.resourceVersion is empty, as stored.
    """

    __slots__ = ("_message", "data", "key", "kind")

    def __init__(self, key: str, kind: AnyKind | None, data: bytes) -> None:
        self.key = key
        self.kind = kind
        self.data = data
        self._message: Message | None = None

    @property
    def message(self) -> Message | None:
        """Return the object; None for a value of no kind of `nominee.machinery.api.kinds`.

        Raises:
            EnvelopeError: the value cannot be decoded; the text names the key.
        """
        if self._message is None and self.kind is not None:
            try:
                self._message = envelope.decode(self.kind, self.data)
            except envelope.EnvelopeError as error:
                raise envelope.EnvelopeError(f"{self.key}: {error}") from None
        return self._message

    @property
    def is_readable(self) -> bool:
        """Return whether the value can be decoded; that of another program perhaps cannot."""
        try:
            _ = self.message
        except envelope.EnvelopeError:
            return False
        return True

    def forget(self) -> None:
        """Free the decoded object; it is decoded again when it is read."""
        self._message = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One write of one key.

    `revision` is etcd's, and the object's resourceVersion. `value` is None where the key was deleted,
    `previous_value` where it did not exist. `time` is in seconds since the epoch: when the observer saw
    the write; in a history that was read afterwards, the newest time that an object up to here states.

    `is_state`: not a write but the key's state where the history begins, or goes on after a gap;
    `revision` is then the key's last write before.
    """

    revision: int
    key: str
    kind: AnyKind | None
    namespace: str
    name: str
    value: StoredObject | None
    previous_value: StoredObject | None
    time: float
    is_state: bool = False

    @property
    def object(self) -> Message | None:
        """Return the object after the write; None if it was deleted."""
        return None if self.value is None else self.value.message

    @property
    def previous(self) -> Message | None:
        """Return the object before the write; None if it did not exist."""
        return None if self.previous_value is None else self.previous_value.message

    def after(self, kind: Kind[_M]) -> _M | None:
        """Return the object after the write, if it is of this kind."""
        return cast("_M | None", self.object) if self.kind is kind else None

    def before(self, kind: Kind[_M]) -> _M | None:
        """Return the object before the write, if it is of this kind."""
        return cast("_M | None", self.previous) if self.kind is kind else None

    @property
    def is_readable(self) -> bool:
        """Return whether the object can be decoded, before and after the write."""
        return all(each is None or each.is_readable for each in (self.value, self.previous_value))

    @property
    def subject(self) -> str:
        """Return the object's name for a person: `Pod default/p`, or the key."""
        if self.kind is None:
            return self.key
        return subject_of(self.kind, self.namespace, self.name)


def subject_of(kind: AnyKind, namespace: str, name: str) -> str:
    """Return an object's name for a person: `Pod default/p`."""
    return f"{kind.kind} {namespace}/{name}" if namespace and kind.namespaced else f"{kind.kind} {name}"
