"""Objects in storage: read, create, update and delete with optimistic concurrency, for every kind.

An update starts from the watch cache's object, which may be old, and is retried on the newest one when it
fails or would change nothing. The rules of kinds are elsewhere.

Source: kube-apiserver 1.36, storage/etcd3/store.go and the dry-run wrapper.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from nominee.apiserver.cache.stored_objects import StoredObjects
from nominee.apiserver.kinds.table import rules_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.storage.interface import KeyExists, RevisionMismatch, Storage, StoredValue
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire import envelope

UPDATE_ATTEMPTS_MAX = 64
"""Attempts of one change against other writers; each conflict means that another write succeeded."""


class Snapshot(Protocol):
    """The watch cache, from which an update may start without a read of etcd."""

    def get(self, kind: AnyKind, namespace: str, name: str) -> CachedObject | None: ...


class Cache(Snapshot, Protocol):
    """The part of the watch cache that writes use."""

    def list(self, kind: AnyKind, namespace: str = "") -> Sequence[CachedObject]: ...

    async def wait_until(self, revision: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Conditions on the stored object; "" is no condition."""

    uid: str = ""
    resource_version: str = ""

    def check(self, kind: AnyKind, current: CachedObject) -> None:
        """Check the preconditions.

        Raises: StatusError 409.
        """
        uid = current.message.metadata.uid
        problem = ""
        if self.uid and self.uid != uid:
            problem = f"UID in precondition: {self.uid}, UID in object meta: {uid}"
        elif self.resource_version and self.resource_version != str(current.revision):
            problem = (
                f"ResourceVersion in precondition: {self.resource_version},"
                f" ResourceVersion in object meta: {current.revision}"
            )
        if problem:
            raise errors.conflict(
                kind,
                current.name,
                f"StorageError: invalid object, Code: 4, Key: {current.key}, ResourceVersion: 0,"
                f" AdditionalErrorMsg: Precondition failed: {problem}",
            )


NO_PRECONDITIONS = Preconditions()


class Verdict(Exception):
    """Raised by a mutation that writes nothing, for a reason that the caller handles."""


class DeleteInstead(Verdict):
    """Delete the object instead of writing it: its last finalizer was removed."""


Mutation = Callable[[CachedObject], Awaitable[Message]]


class Store:
    """See the module."""

    def __init__(self, storage: Storage, objects: StoredObjects, snapshot: Snapshot | None = None) -> None:
        self._storage = storage
        self._objects = objects
        self._snapshot = snapshot

    @property
    def storage(self) -> Storage:
        return self._storage

    # Reading.

    async def read(self, kind: AnyKind, namespace: str, name: str) -> CachedObject:
        """Return the newest version, from etcd itself.

        Raises: StatusError 404.
        """
        found = await self.newest(kind, namespace, name)
        if found is None:
            raise errors.not_found(kind, name)
        return found

    async def newest(self, kind: AnyKind, namespace: str, name: str) -> CachedObject | None:
        """Return the newest version, from etcd itself, or None when the object does not exist."""
        value = await self._storage.get(kind.key(namespace, name))
        return self._object(kind, namespace, name, value) if value is not None else None

    async def find(self, kind: AnyKind, namespace: str, name: str) -> CachedObject | None:
        """Return an object from the cache, or else from etcd; None when it does not exist."""
        cached = self._snapshot.get(kind, namespace, name) if self._snapshot is not None else None
        return cached if cached is not None else await self.newest(kind, namespace, name)

    async def list(self, kind: AnyKind, namespace: str = "") -> list[CachedObject]:
        """Return all objects, from etcd itself."""
        prefix = kind.key_prefix(namespace if kind.namespaced else "")
        found = await self._storage.range(prefix)
        below = len(kind.key_prefix())
        objects = []
        for value in found.items:
            where, _, name = value.key[below:].rpartition("/")
            objects.append(self._object(kind, where, name, value))
        return objects

    def _object(self, kind: AnyKind, namespace: str, name: str, value: StoredValue) -> CachedObject:
        return self._objects.of(kind, namespace, name, value.mod_revision, value.data)

    # Writing.

    async def create(
        self, kind: AnyKind, obj: Any, *, dry_run: bool = False, lease_seconds: int = 0
    ) -> CachedObject:
        """Write a new object.

        Raises: StatusError 409 AlreadyExists.
        """
        metadata = obj.metadata
        if metadata.resourceVersion:
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        data = encode(kind, obj)
        namespace = metadata.namespace if kind.namespaced else ""
        name = metadata.name
        key = kind.key(namespace, name)
        try:
            if dry_run:
                if await self._storage.get(key) is not None:
                    raise KeyExists(key)
                revision = 0
            else:
                revision = await self._storage.create(key, data, lease_seconds=lease_seconds)
        except KeyExists:
            raise await self._exists(kind, namespace, name) from None
        return CachedObject(kind, namespace, name, revision, stored=data)

    async def _exists(self, kind: AnyKind, namespace: str, name: str) -> StatusError:
        error = errors.already_exists(kind, name)
        value = await self._storage.get(kind.key(namespace, name))
        if value is None:
            return error
        current = self._object(kind, namespace, name, value)
        if current.message.metadata.HasField("deletionTimestamp"):
            text = f"object is being deleted: {error.message}"
            return StatusError(error.code, error.reason, text, details=error.details)
        return error

    async def update(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        mutate: Mutation,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        dry_run: bool = False,
        lease_seconds: int = 0,
        at: CachedObject | None = None,
        filled: bool = False,
    ) -> CachedObject:
        """Update an object: `mutate` returns the new message, leaving the old one unchanged, or raises.

        Writes nothing when nothing changes; an Event's time to live is then not extended either, as upstream
        (storage/etcd3/store.go, GuaranteedUpdate). The value in etcd counts: if it has a field that this
        server does not know, a write that changes nothing removes the field. `mutate` may run several times.
        `at` is the newest version as the caller has just read it; `filled` promises that `mutate` returns a
        message with presence filled in (as it is in a copy of a stored object).

        Raises: StatusError 404 when the object does not exist, 409 after too many attempts, and what `mutate`
        raises on the newest version.
        """
        cached = None
        if at is None and self._snapshot is not None:
            cached = self._snapshot.get(kind, namespace, name)
        current = at or cached or await self.read(kind, namespace, name)
        newest = cached is None
        key = kind.key(namespace, name)
        for _ in range(UPDATE_ATTEMPTS_MAX):
            try:
                if preconditions is not NO_PRECONDITIONS:
                    preconditions.check(kind, current)
                data = encode(kind, await mutate(current), filled=filled)
            except (StatusError, Verdict):
                if newest:
                    raise
                current, newest = await self.read(kind, namespace, name), True
                continue
            if data == current.stored:
                if newest:
                    return current
                current, newest = await self.read(kind, namespace, name), True
                continue
            if dry_run:
                return CachedObject(kind, namespace, name, current.revision, stored=data)
            try:
                revision = await self._storage.update(
                    key, data, expected_revision=current.revision, lease_seconds=lease_seconds
                )
            except RevisionMismatch as mismatch:
                if mismatch.current is None:
                    raise errors.not_found(kind, name) from None
                current, newest = self._object(kind, namespace, name, mismatch.current), True
                continue
            return CachedObject(kind, namespace, name, revision, stored=data)
        raise errors.conflict(kind, name)

    async def delete(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        dry_run: bool = False,
        at: CachedObject | None = None,
    ) -> CachedObject:
        """Delete an object's key at any version, and return its last state.

        `at` is the version that the caller has read, to start from.

        Raises: StatusError 404, 409 for the preconditions.
        """
        current = at or await self.read(kind, namespace, name)
        for _ in range(UPDATE_ATTEMPTS_MAX):
            preconditions.check(kind, current)
            if dry_run:
                return current
            try:
                revision = await self._storage.delete(current.key, expected_revision=current.revision)
            except RevisionMismatch as mismatch:
                if mismatch.current is None:
                    raise errors.not_found(kind, name) from None
                current = self._object(kind, namespace, name, mismatch.current)
                continue
            return current.at_revision(revision)
        raise errors.conflict(kind, name)


def encode(kind: AnyKind, obj: Any, *, filled: bool = False) -> bytes:
    """Return the stored form of an object, without a resourceVersion, which is the key's revision."""
    obj.metadata.resourceVersion = ""
    if not filled:
        rules_of(kind).fill(obj)
    return envelope.wrap(kind, obj.SerializeToString(deterministic=True))
