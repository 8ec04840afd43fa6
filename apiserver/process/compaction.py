"""Compaction of etcd's history every few minutes, as kube-apiserver does."""

from __future__ import annotations

from typing import Protocol

from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.apiserver.storage.interface import StorageError
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock

_log = logs.get()


class Compactable(Protocol):
    """Storage with a history that can be compacted."""

    async def compact(self, revision: int) -> None: ...


async def compact_regularly(
    storage: Compactable, cache: WatchCache, clock: Clock, interval_seconds: float
) -> None:
    """Compact at every interval to the revision at its beginning, until cancelled.

    A client thus has between one and two intervals to continue from a revision that it has seen.
    """
    while True:
        revision = cache.revision
        await clock.sleep(interval_seconds)
        try:
            await storage.compact(revision)
        except StorageError as error:
            _log.warning("compaction failed; trying again later", revision=revision, error=str(error))
