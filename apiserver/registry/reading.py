"""The sources that the registry reads from: the watch cache, and storage behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nominee.apiserver.cache.kind_cache import Convert
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import ListOptions, ListPage, WatchOptions
from nominee.apiserver.objects.watcher import Watcher
from nominee.apiserver.registry.store import Snapshot
from nominee.machinery.api.kinds import AnyKind


class Reader(Protocol):
    """Reading from cache and storage (`nominee.apiserver.cache.reads.Reads`)."""

    async def get(
        self, kind: AnyKind, namespace: str, name: str, *, resource_version: str = ""
    ) -> CachedObject | None: ...

    async def list(
        self, kind: AnyKind, namespace: str, options: ListOptions, *, convert: Convert | None = None
    ) -> ListPage: ...

    async def watch(
        self, kind: AnyKind, namespace: str, options: WatchOptions, *, convert: Convert | None = None
    ) -> Watcher: ...


class Cache(Snapshot, Protocol):
    """The part of the watch cache that writes use."""

    def list(self, kind: AnyKind, namespace: str = "") -> Sequence[CachedObject]: ...

    async def wait_until(self, revision: int) -> None: ...
