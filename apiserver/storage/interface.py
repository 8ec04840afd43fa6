r"""The storage that the registry uses: compare-and-swap on keys, each write one revision.

Revisions are etcd's: int64, one more with every write of the whole store. A value is an envelope (`k8s\0` and
a `runtime.Unknown`) whose object has an empty metadata.resourceVersion; its resourceVersion is
`mod_revision`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

VALUE_BYTES_MAX = 1536 << 10
"""The limit of a whole request, etcd's default (`--max-request-bytes`)."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """The value of a key, as stored in etcd."""

    key: str
    data: bytes
    mod_revision: int


@dataclass(frozen=True, slots=True)
class RangeResult:
    """A page of keys in key order.

    `revision` is the store's revision of the page: the requested one, or the newest. `remaining` counts the
    keys after this page; `more` says whether there are any.
    """

    items: list[StoredValue]
    revision: int
    more: bool
    remaining: int


class StorageError(Exception):
    """The base of storage's errors."""


class KeyExists(StorageError):
    """Create found the key present."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key exists: {key}")
        self.key = key


class RevisionMismatch(StorageError):
    """The key is not at the expected revision; `current` is its value, None when it does not exist."""

    def __init__(self, key: str, expected_revision: int, current: StoredValue | None) -> None:
        found = f"is at revision {current.mod_revision}" if current else "does not exist"
        super().__init__(f"{key} {found}, expected revision {expected_revision}")
        self.key = key
        self.expected_revision = expected_revision
        self.current = current


class Compacted(StorageError):
    """The requested revision is older than etcd's history: 410 Expired."""

    def __init__(self, revision: int, compact_revision: int = 0) -> None:
        super().__init__(
            f"revision {revision} has been compacted (oldest kept: {compact_revision or 'unknown'})"
        )
        self.revision = revision
        self.compact_revision = compact_revision


class FutureRevision(StorageError):
    """The requested revision does not exist yet."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"revision {revision} is in the future")
        self.revision = revision


class LeaseNotFound(StorageError):
    """etcd does not know the lease of a write; raised inside storage only."""


class ValueTooLarge(StorageError):
    """A write exceeds etcd's limit and was not applied: 413."""


class StorageUnavailable(StorageError):
    """etcd does not answer, or a write's outcome is unknown (`maybe_applied`): 503, or 504 for a time-out."""

    def __init__(self, message: str, *, timed_out: bool = False, maybe_applied: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.maybe_applied = maybe_applied


class Storage(Protocol):
    """Compare-and-swap storage. Every method may raise StorageUnavailable, a write ValueTooLarge."""

    async def get(self, key: str) -> StoredValue | None:
        """Return the newest value by a linearizable read, or None."""
        ...

    async def create(self, key: str, data: bytes, *, lease_seconds: int = 0) -> int:
        """Create a key that must not exist, and return its revision.

        With `lease_seconds` > 0 etcd deletes the key, not before that time.

        Raises: KeyExists.
        """
        ...

    async def update(self, key: str, data: bytes, *, expected_revision: int, lease_seconds: int = 0) -> int:
        """Replace the value at `expected_revision`, and return the new revision.

        With `lease_seconds` 0 a key that had a lease loses it, as in Kubernetes: each write sets its TTL.

        Raises: RevisionMismatch.
        """
        ...

    async def delete(self, key: str, *, expected_revision: int) -> int:
        """Delete the key at `expected_revision`, and return the deletion's revision.

        Raises: RevisionMismatch.
        """
        ...

    async def range(
        self, prefix: str, *, revision: int = 0, limit: int = 0, start_after: str = ""
    ) -> RangeResult:
        """Return a page of the keys with `prefix` that come after the key `start_after`, in key order.

        `revision` 0 is the newest, `limit` 0 means all.

        Raises: Compacted or FutureRevision for a revision that etcd does not have.
        """
        ...

    async def current_revision(self) -> int:
        """Return the store's revision by a linearizable read: it includes every write acknowledged before."""
        ...
