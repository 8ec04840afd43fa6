"""Storage and cache in a dictionary, for tests of rules that need no etcd."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nominee.apiserver.cache.stored_objects import StoredObjects
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.schema.version_fields import TABLE_VERSION
from nominee.apiserver.storage.interface import KeyExists, RangeResult, RevisionMismatch, StoredValue
from nominee.machinery.api.kinds import Kind
from nominee.machinery.features.gates import Version


class MemoryStorage:
    """`nominee.apiserver.storage.interface.Storage`, and what the registry asks of the watch cache."""

    def __init__(self) -> None:
        self.values: dict[str, StoredValue] = {}
        self.revision = 1

    async def get(self, key: str) -> StoredValue | None:
        return self.values.get(key)

    def _put(self, key: str, data: bytes) -> int:
        self.revision += 1
        self.values[key] = StoredValue(key, data, self.revision)
        return self.revision

    async def create(self, key: str, data: bytes, *, lease_seconds: int = 0) -> int:
        if key in self.values:
            raise KeyExists(key)
        return self._put(key, data)

    def _expect(self, key: str, revision: int) -> None:
        current = self.values.get(key)
        if current is None or current.mod_revision != revision:
            raise RevisionMismatch(key, revision, current)

    async def update(self, key: str, data: bytes, *, expected_revision: int, lease_seconds: int = 0) -> int:
        self._expect(key, expected_revision)
        return self._put(key, data)

    async def delete(self, key: str, *, expected_revision: int) -> int:
        self._expect(key, expected_revision)
        self.revision += 1
        del self.values[key]
        return self.revision

    async def range(
        self, prefix: str, *, revision: int = 0, limit: int = 0, start_after: str = ""
    ) -> RangeResult:
        found = [value for key, value in sorted(self.values.items()) if key.startswith(prefix)]
        return RangeResult(found, self.revision, more=False, remaining=0)

    async def current_revision(self) -> int:
        return self.revision


@dataclass
class MemoryKindCache:
    """The objects of one kind in key order."""

    objects: list[CachedObject]

    def in_order(self, namespace: str, start: str = "") -> Iterator[CachedObject]:
        assert not start, "pages are not simulated"
        return (obj for obj in self.objects if namespace in ("", obj.namespace))


class MemoryCache:
    """The present of a MemoryStorage as the watch cache would show it, never behind."""

    def __init__(self, storage: MemoryStorage, version: Version = TABLE_VERSION) -> None:
        self._storage = storage
        self._values = storage.values
        self.objects = StoredObjects(version)

    @property
    def revision(self) -> int:
        return self._storage.revision

    def of(self, kind: Kind[Any]) -> MemoryKindCache:
        return MemoryKindCache(self.list(kind))

    def get(self, kind: Kind[Any], namespace: str, name: str) -> CachedObject | None:
        value = self._values.get(kind.key(namespace, name))
        if value is None:
            return None
        return self.objects.of(kind, namespace, name, value.mod_revision, value.data)

    def list(self, kind: Kind[Any], namespace: str = "") -> list[CachedObject]:
        prefix = kind.key_prefix()
        keys = [key.removeprefix(prefix) for key in sorted(self._values) if key.startswith(prefix)]
        places = [key.rpartition("/") for key in keys]
        found = [self.get(kind, where, name) for where, _, name in places if namespace in ("", where)]
        return [obj for obj in found if obj is not None]

    async def wait_until(self, revision: int) -> None:
        return None
