"""What the registry expects of storage: compare-and-swap on keys, each write one revision.

Revisions are etcd's: int64, one more with every write of the whole store. A value is an envelope (`k8s\\0`
and a `runtime.Unknown`) whose object has an empty metadata.resourceVersion; its resource version is
`mod_revision`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

VALUE_BYTES_MAX = 1536 << 10
"""Of a whole request, by etcd's default (`--max-request-bytes`)."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """One key's value as it lies in etcd."""

    key: str
    data: bytes
    mod_revision: int


@dataclass(frozen=True, slots=True)
class RangeResult:
    """A page of keys in key order.

    `revision` is the store's revision that the page reflects: the one asked for, or the newest. `remaining`
    counts the keys after this page; `more` says whether there are any.
    """

    items: list[StoredValue]
    revision: int
    more: bool
    remaining: int


class StorageError(Exception):
    """Base of what storage raises besides what it is not responsible for (cancellation)."""


class KeyExists(StorageError):
    """Create found the key present."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key exists: {key}")
        self.key = key


class RevisionMismatch(StorageError):
    """The key is not at the expected revision; `current` is what is there now, None if nothing is."""

    def __init__(self, key: str, expected_revision: int, current: StoredValue | None) -> None:
        found = f"is at revision {current.mod_revision}" if current else "does not exist"
        super().__init__(f"{key} {found}, expected revision {expected_revision}")
        self.key = key
        self.expected_revision = expected_revision
        self.current = current


class Compacted(StorageError):
    """The revision asked for is older than what etcd keeps: 410 Expired."""

    def __init__(self, revision: int, compact_revision: int = 0) -> None:
        super().__init__(
            f"revision {revision} has been compacted (oldest kept: {compact_revision or 'unknown'})"
        )
        self.revision = revision
        self.compact_revision = compact_revision


class FutureRevision(StorageError):
    """The revision asked for does not exist yet."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"revision {revision} is in the future")
        self.revision = revision


class LeaseNotFound(StorageError):
    """Etcd does not know a lease that a write named; inside storage only."""


class ValueTooLarge(StorageError):
    """A write is larger than etcd takes; it was not carried out, and never will be: 413."""


class StorageUnavailable(StorageError):
    """Etcd does not answer, or a write's outcome is unknown (`maybe_applied`): 503, or 504 for a time-out."""

    def __init__(self, message: str, *, timed_out: bool = False, maybe_applied: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.maybe_applied = maybe_applied


class Storage(Protocol):
    """Compare-and-swap storage. Every method may raise StorageUnavailable, a write ValueTooLarge."""

    async def get(self, key: str) -> StoredValue | None:
        """The newest value, by a linearizable read."""
        ...

    async def create(self, key: str, data: bytes, *, lease_seconds: int = 0) -> int:
        """Write a key that must not exist; its revision. Raises KeyExists.

        `lease_seconds` > 0: the key goes by itself, not before that time.
        """
        ...

    async def update(self, key: str, data: bytes, *, expected_revision: int, lease_seconds: int = 0) -> int:
        """Replace the value at `expected_revision`; the new revision. Raises RevisionMismatch.

        With `lease_seconds` 0 a key that had a lease loses it, as in Kubernetes: each write says its TTL.
        """
        ...

    async def delete(self, key: str, *, expected_revision: int) -> int:
        """Delete the key at `expected_revision`; the deletion's revision. Raises RevisionMismatch."""
        ...

    async def range(
        self, prefix: str, *, revision: int = 0, limit: int = 0, start_after: str = ""
    ) -> RangeResult:
        """A page of the keys with `prefix` that come after the key `start_after`, in key order.

        `revision` 0 is the newest, `limit` 0 means all.
        Raises Compacted or FutureRevision for a revision that etcd does not have.
        """
        ...

    async def current_revision(self) -> int:
        """The store's revision by a linearizable read: every write acknowledged before is in it."""
        ...
