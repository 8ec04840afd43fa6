"""The store's revision, read once for concurrent readers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nominee.apiserver.storage.interface import StorageError


class _Batch:
    """The readers that joined before one read began; they share its outcome."""

    __slots__ = ("error", "revision")

    def __init__(self) -> None:
        self.revision = 0
        self.error: StorageError | None = None


class RevisionReader:
    """Reads the revision for concurrent readers: at most one read is in progress.

    Readers that arrive meanwhile share the next read, which begins after they arrived. A revision from a read
    that began earlier could miss a write that was acknowledged in between.
    """

    def __init__(self, read: Callable[[], Awaitable[int]]) -> None:
        self._read = read
        self._batch = _Batch()
        self._lock = asyncio.Lock()

    async def current(self) -> int:
        """Return a revision that includes every write acknowledged before this call.

        Raises: StorageError.
        """
        batch = self._batch
        async with self._lock:
            if not batch.revision and batch.error is None:
                self._batch = _Batch()
                try:
                    batch.revision = await self._read()
                except StorageError as error:
                    batch.error = error
        if batch.error is not None:
            raise batch.error
        return batch.revision
