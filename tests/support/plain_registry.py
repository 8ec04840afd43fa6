"""A registry without rules, to test fronts and the watch cache: objects are stored as they come."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.message import Message

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import (
    NO_OPTIONS,
    DeleteResult,
    ListOptions,
    ListPage,
    PatchKind,
    WatchOptions,
    WriteOptions,
    WriteResult,
)
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.apiserver.storage.interface import KeyExists, RevisionMismatch
from nominee.machinery.api import errors
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import meta
from nominee.machinery.wire import envelope

AnyKind = Kind[Any]


class PlainRegistry:
    """`nominee.apiserver.objects.requests.RegistryAPI` over storage and cache, and nothing else."""

    def __init__(self, storage: EtcdStorage, cache: WatchCache) -> None:
        self._storage = storage
        self._reads = Reads(storage, cache, fields_of)

    async def get(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str = "",
        *,
        resource_version: str = "",
    ) -> CachedObject:
        found = await self._reads.get(kind, namespace, name, resource_version=resource_version)
        if found is None:
            raise errors.not_found(kind, name)
        return found

    async def list(self, kind: AnyKind, namespace: str, options: ListOptions) -> ListPage:
        return await self._reads.list(kind, namespace, options)

    async def watch(self, kind: AnyKind, namespace: str, options: WatchOptions) -> Watcher:
        return await self._reads.watch(kind, namespace, options)

    async def create(
        self,
        kind: AnyKind,
        namespace: str,
        body: Message,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult:
        """Store the object under the name in its metadata."""
        metadata = metadata_of(body)
        data = envelope.encode(body)
        try:
            revision = await self._storage.create(kind.key(metadata.namespace, metadata.name), data)
        except KeyExists:
            raise errors.already_exists(kind, metadata.name) from None
        made = CachedObject(kind, metadata.namespace, metadata.name, revision, stored=data)
        return WriteResult(made, created=True)

    async def update(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str,
        body: Message,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult:
        """Replace the object that has the body's resource version; RevisionMismatch becomes a Conflict."""
        metadata = metadata_of(body)
        expected = int(metadata.resourceVersion)
        metadata.resourceVersion = ""
        data = envelope.encode(body)
        try:
            revision = await self._storage.update(kind.key(namespace, name), data, expected_revision=expected)
        except RevisionMismatch:
            raise errors.conflict(kind, name) from None
        return WriteResult(CachedObject(kind, namespace, name, revision, stored=data))

    async def patch(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str,
        patch_kind: PatchKind,
        data: bytes,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult:
        """Apply a merge patch of labels; other fields are ignored."""
        current = await self.get(kind, namespace, name)
        changed = kind.message()
        changed.CopyFrom(current.message)
        changed.metadata.labels.update(json.loads(data)["metadata"]["labels"])
        return await self.update(kind, namespace, name, "", changed)

    async def delete(
        self, kind: AnyKind, namespace: str, name: str, options: meta.DeleteOptions
    ) -> DeleteResult:
        current = await self.get(kind, namespace, name)
        revision = await self._storage.delete(current.key, expected_revision=current.revision)
        return DeleteResult(current.at_revision(revision), deleted=True)

    # Subresources that are objects of their own are not served.

    async def get_scale(self, *_: object, **__: object) -> CachedObject:
        raise errors.unknown_resource()

    async def _not_served(self, *_: object, **__: object) -> WriteResult:
        raise errors.unknown_resource()

    update_scale = patch_scale = bind = evict = issue_token = _not_served
