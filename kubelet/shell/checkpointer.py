"""Saves one node's checkpoint: many changes, few writes, and nobody acts before the write is done."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.to_thread

from kubelet.checkpoint import Checkpoint, encode
from kubelet.shell.checkpoint_file import CheckpointFile
from kubelet.shell.points import CHECKPOINT_AFTER, CHECKPOINT_BEFORE


class Checkpointer:
    """`changed` marks the state as newer than the file; `saved` returns once the file has caught up."""

    def __init__(
        self, file: CheckpointFile, snapshot: Callable[[], Checkpoint], limiter: anyio.CapacityLimiter
    ) -> None:
        self._file = file
        self._snapshot = snapshot
        self._limiter = limiter
        self._lock = anyio.Lock()
        self._version = 0
        self._saved = 0

    def changed(self) -> None:
        self._version += 1

    async def saved(self) -> None:
        """Writes what has changed up to now, unless another caller just did. OSError, FailpointError."""
        wanted = self._version
        if self._saved >= wanted:
            return
        async with self._lock:
            if self._saved >= wanted:
                return
            await CHECKPOINT_BEFORE.hit(node=self._file.node)
            version, data = self._version, encode(self._snapshot())
            await anyio.to_thread.run_sync(self._file.write, data, limiter=self._limiter)
            self._saved = version
            await CHECKPOINT_AFTER.hit(node=self._file.node)

    async def remove(self) -> None:
        """The node is gone for good."""
        async with self._lock:
            await anyio.to_thread.run_sync(self._file.remove, limiter=self._limiter)
