"""What the registry reads from: the watch cache, and storage behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from apiserver.cached_object import CachedObject
from apiserver.kind_cache import Convert
from apiserver.registry.store import Snapshot
from apiserver.requests import ListOptions, ListPage, WatchOptions
from apiserver.watcher import Watcher
from machinery.api.kinds import Kind


class Reader(Protocol):
    """Reading from cache and storage (`apiserver.reads.Reads`)."""

    async def get(
        self, kind: Kind[Any], namespace: str, name: str, *, resource_version: str = ""
    ) -> CachedObject | None: ...

    async def list(
        self, kind: Kind[Any], namespace: str, options: ListOptions, *, convert: Convert | None = None
    ) -> ListPage: ...

    async def watch(
        self, kind: Kind[Any], namespace: str, options: WatchOptions, *, convert: Convert | None = None
    ) -> Watcher: ...


class Cache(Snapshot, Protocol):
    """The watch cache, as far as writes use it."""

    def list(self, kind: Kind[Any], namespace: str = "") -> Sequence[CachedObject]: ...

    async def wait_until(self, revision: int) -> None: ...
