"""A key-value store in memory with the interface of the API server's storage."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.store import encode
from nominee.apiserver.storage.interface import KeyExists, RangeResult, RevisionMismatch, StoredValue
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of, key_of


class MemoryStorage:
    """Keys with the revision of their last write."""

    def __init__(self) -> None:
        self.revision = 1
        self.values: dict[str, StoredValue] = {}

    def put(self, obj: Message) -> CachedObject:
        """Store an object as a client would; return it as the API server caches it."""
        kind, (namespace, name) = kinds.of(obj), key_of(obj)
        self.revision += 1
        key, data = kind.key(namespace, name), encode(kind, copy_of(obj))
        self.values[key] = StoredValue(key, data, self.revision)
        return CachedObject(kind, namespace, name, self.revision, stored=data)

    async def get(self, key: str) -> StoredValue | None:
        return self.values.get(key)

    async def create(self, key: str, data: bytes, *, lease_seconds: int = 0) -> int:
        if key in self.values:
            raise KeyExists(key)
        return self._write(key, data)

    async def update(self, key: str, data: bytes, *, expected_revision: int, lease_seconds: int = 0) -> int:
        self._compare(key, expected_revision)
        return self._write(key, data)

    async def delete(self, key: str, *, expected_revision: int) -> int:
        self._compare(key, expected_revision)
        del self.values[key]
        self.revision += 1
        return self.revision

    async def range(
        self, prefix: str, *, revision: int = 0, limit: int = 0, start_after: str = ""
    ) -> RangeResult:
        items = [value for key, value in sorted(self.values.items()) if key.startswith(prefix)]
        return RangeResult(items, self.revision, more=False, remaining=0)

    async def current_revision(self) -> int:
        return self.revision

    def _compare(self, key: str, expected_revision: int) -> None:
        found = self.values.get(key)
        if found is None or found.mod_revision != expected_revision:
            raise RevisionMismatch(key, expected_revision, found)

    def _write(self, key: str, data: bytes) -> int:
        self.revision += 1
        self.values[key] = StoredValue(key, data, self.revision)
        return self.revision


class LaggingCache:
    """A watch cache that has the objects that it was given, whatever the storage has by now."""

    def __init__(self, *objects: CachedObject) -> None:
        self._objects = {(found.kind, found.namespace, found.name): found for found in objects}

    def get(self, kind: AnyKind, namespace: str, name: str) -> CachedObject | None:
        return self._objects.get((kind, namespace, name))

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a lagging cache has no {name}")
