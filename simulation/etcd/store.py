"""Keys with all their versions, at revisions. Source: etcd 3.5, server/storage/mvcc."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from aetcd import rpc


@dataclass(frozen=True, slots=True)
class Version:
    """A key's value since `revision`; `pair` is None after a deletion. Messages are never changed."""

    revision: int
    pair: rpc.KeyValue | None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one key; `previous` is its value before, None if there was none."""

    key: bytes
    pair: rpc.KeyValue | None
    previous: rpc.KeyValue | None
    revision: int


@dataclass(slots=True)
class Lease:
    """A lease with its keys; `expires` is a time of the simulation, both times in seconds."""

    id: int
    ttl: int
    expires: float
    keys: dict[bytes, None] = field(default_factory=dict)


class CompactedError(Exception):
    """A revision that was compacted is asked for."""


class FutureRevisionError(Exception):
    """A revision that does not exist yet is asked for."""


class Store:
    """The data of one etcd. It survives when the process is killed."""

    def __init__(self) -> None:
        self.revision = 1
        self.compacted = 0
        self.log: list[tuple[Change, ...]] = []
        """The changes of each revision from 2 on. Compaction keeps them: they are the history."""
        self.times: list[float] = []
        """When they were made, in seconds of the simulation."""
        self.on_write: Callable[[float, tuple[Change, ...]], None] = lambda time, changes: None
        """Called after each revision, with its time and changes."""
        self.leases: dict[int, Lease] = {}
        self._versions: dict[bytes, list[Version]] = {}
        self._keys: list[bytes] = []

    # Reading.

    def get(self, key: bytes) -> rpc.KeyValue | None:
        """Return a key's newest value."""
        versions = self._versions.get(key)
        return versions[-1].pair if versions else None

    def check(self, revision: int) -> None:
        """Check that the state at a revision can be read. Raises: CompactedError, FutureRevisionError."""
        if revision > self.revision:
            raise FutureRevisionError
        if 0 < revision < self.compacted:
            raise CompactedError

    def pairs(self, key: bytes, range_end: bytes, revision: int = 0) -> list[rpc.KeyValue]:
        """Return the values of a range in key order, at a revision or (0) the newest."""
        found = (self._at(each, revision) for each in self._range(key, range_end))
        return [pair for pair in found if pair is not None]

    def _at(self, key: bytes, revision: int) -> rpc.KeyValue | None:
        versions = self._versions[key]
        if not revision:
            return versions[-1].pair
        index = bisect.bisect_right(versions, revision, key=lambda version: version.revision)
        return versions[index - 1].pair if index else None

    def _range(self, key: bytes, range_end: bytes) -> list[bytes]:
        if not range_end:
            return [key] if key in self._versions else []
        first = bisect.bisect_left(self._keys, key)
        last = len(self._keys) if range_end == b"\0" else bisect.bisect_left(self._keys, range_end)
        return self._keys[first:last]

    def since(self, revision: int) -> Iterator[tuple[Change, ...]]:
        """Yield the changes of a revision and all later ones, by revision.

        Compaction at a revision drops the deletions of this revision; its puts stay. etcd drops them a little
        later than it answers, unless the request is `physical`.
        """
        for changes in self.log[max(revision - 2, 0) :]:
            if changes and changes[0].revision == self.compacted:
                changes = tuple(change for change in changes if change.pair is not None)
            yield changes

    # Writing.

    def write(self, changes: Mapping[bytes, tuple[bytes, int] | None], now: float) -> None:
        """Put (value, lease) or delete (None) keys, all in one new revision, in order."""
        revision = self.revision + 1
        made = tuple(self._change(key, change, revision) for key, change in changes.items())
        self.revision = revision
        self.log.append(made)
        self.times.append(now)
        self.on_write(now, made)

    def _change(self, key: bytes, change: tuple[bytes, int] | None, revision: int) -> Change:
        previous = self.get(key)
        pair = None
        if change is not None:
            value, lease = change
            pair = rpc.KeyValue(
                key=key,
                value=value,
                lease=lease,
                mod_revision=revision,
                create_revision=previous.create_revision if previous is not None else revision,
                version=previous.version + 1 if previous is not None else 1,
            )
        if previous is not None and previous.lease in self.leases:
            self.leases[previous.lease].keys.pop(key, None)
        if pair is not None and pair.lease:
            self.leases[pair.lease].keys[key] = None
        if key not in self._versions:
            bisect.insort(self._keys, key)
        self._versions.setdefault(key, []).append(Version(revision, pair))
        return Change(key, pair, previous, revision)

    def compact(self, revision: int) -> None:
        """Forbid reading before a revision. Raises: CompactedError, FutureRevisionError."""
        if revision <= self.compacted:
            raise CompactedError
        if revision > self.revision:
            raise FutureRevisionError
        self.compacted = revision

    def digest(self) -> str:
        """Return a hash of the whole history: times, keys and values of all revisions."""
        digest = hashlib.sha256()
        for time, changes in zip(self.times, self.log, strict=True):
            digest.update(repr(time).encode())
            for change in changes:
                value = b"" if change.pair is None else change.pair.SerializeToString(deterministic=True)
                digest.update(b"%d:%b%d:%b" % (len(change.key), change.key, len(value), value))
        return digest.hexdigest()

    # Leases.

    def grant(self, lease: Lease) -> None:
        self.leases[lease.id] = lease

    def revoke(self, lease: Lease, now: float) -> None:
        """End a lease; its keys are deleted in one revision."""
        keys = sorted(lease.keys)
        if keys:
            self.write(dict.fromkeys(keys), now)
        del self.leases[lease.id]

    def extend_leases(self, now: float) -> None:
        """Give each lease its whole time to live again, as a new leader does."""
        for lease in self.leases.values():
            lease.expires = now + lease.ttl
