"""A registry without rules, to test fronts and the watch cache: objects are stored as they come."""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import (
    Create,
    Delete,
    DeleteResult,
    Get,
    List,
    ObjectRequest,
    Patch,
    Update,
    Watch,
    WriteResult,
)
from nominee.apiserver.storage.etcd_storage import EtcdStorage
from nominee.apiserver.storage.interface import KeyExists, RevisionMismatch
from nominee.machinery.api import errors
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.wire import envelope

R = TypeVar("R")


class PlainRegistry:
    """`nominee.apiserver.objects.requests.RegistryAPI` over storage and cache, and nothing else."""

    def __init__(self, storage: EtcdStorage, cache: WatchCache) -> None:
        self._storage = storage
        self._reads = Reads(storage, cache, fields_of)

    async def perform(self, request: ObjectRequest[R]) -> R:
        return cast("R", await self._perform(request))

    async def _perform(self, request: ObjectRequest[Any]) -> object:
        match request:
            case Get():
                return await self._get(
                    request.kind, request.namespace, request.name, request.resource_version
                )
            case List():
                return await self._reads.list(request.kind, request.namespace, request.options)
            case Watch():
                return await self._reads.watch(request.kind, request.namespace, request.options)
            case Create():
                return await self._create(request)
            case Update():
                return await self._update(request.kind, request.namespace, request.name, request.body)
            case Patch():
                return await self._patch(request)
            case Delete():
                return await self._delete(request)
            case _:  # Subresources that are objects of their own are not served.
                raise errors.unknown_resource()

    async def _get(
        self, kind: AnyKind, namespace: str, name: str, resource_version: str = ""
    ) -> CachedObject:
        found = await self._reads.get(kind, namespace, name, resource_version=resource_version)
        if found is None:
            raise errors.not_found(kind, name)
        return found

    async def _create(self, request: Create) -> WriteResult:
        """Store the object under the name in its metadata."""
        kind, body = request.kind, request.body
        metadata = metadata_of(body)
        data = envelope.encode(body)
        try:
            revision = await self._storage.create(kind.key(metadata.namespace, metadata.name), data)
        except KeyExists:
            raise errors.already_exists(kind, metadata.name) from None
        made = CachedObject(kind, metadata.namespace, metadata.name, revision, stored=data)
        return WriteResult(made, created=True)

    async def _update(self, kind: AnyKind, namespace: str, name: str, body: Message) -> WriteResult:
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

    async def _patch(self, request: Patch) -> WriteResult:
        """Apply a merge patch of labels; other fields are ignored."""
        kind, namespace, name = request.kind, request.namespace, request.name
        current = await self._get(kind, namespace, name)
        changed = kind.message()
        changed.CopyFrom(current.message)
        metadata_of(changed).labels.update(json.loads(request.data)["metadata"]["labels"])
        return await self._update(kind, namespace, name, changed)

    async def _delete(self, request: Delete) -> DeleteResult:
        current = await self._get(request.kind, request.namespace, request.name)
        revision = await self._storage.delete(current.key, expected_revision=current.revision)
        return DeleteResult(current.at_revision(revision), deleted=True)
