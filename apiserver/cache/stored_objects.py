"""Values in etcd as objects: every object that was not written just now is made here."""

from __future__ import annotations

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.schema import stored_fields, version_fields
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Version


class StoredObjects:
    """Makes objects as an API server of the emulated version sees them: without fields of newer versions."""

    __slots__ = ("_is_older", "_version")

    def __init__(self, version: Version) -> None:
        self._version = version
        self._is_older = version < version_fields.TABLE_VERSION

    def of(self, kind: AnyKind, namespace: str, name: str, revision: int, stored: bytes) -> CachedObject:
        """Return the object of a value in etcd; `kind` is the stored kind, `revision` the key's."""
        prune = stored_fields.prune_of(self._version, kind) if self._is_older else None
        return CachedObject(kind, namespace, name, revision, stored=stored, prune=prune)
