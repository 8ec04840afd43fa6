"""Etcd's history is dropped in time, as kube-apiserver does (every 5 minutes)."""

from __future__ import annotations

from typing import Protocol

from apiserver.cache.watch_cache import WatchCache
from apiserver.storage.interface import StorageError
from machinery.runtime import logs
from machinery.runtime.clock import Clock

_log = logs.get()


class Compactable(Protocol):
    """Storage that can forget."""

    async def compact(self, revision: int) -> None: ...


async def compact_regularly(
    storage: Compactable, cache: WatchCache, clock: Clock, interval_seconds: float
) -> None:
    """Every interval, drop what was older than the revision at its beginning; until cancelled.

    So a client has between one and two intervals to go on from a revision it has seen.
    """
    while True:
        revision = cache.revision
        await clock.sleep(interval_seconds)
        try:
            await storage.compact(revision)
        except StorageError as error:
            _log.warning("compaction failed; trying again later", revision=revision, error=str(error))
