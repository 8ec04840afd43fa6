"""Saves one node's checkpoint: many changes, few writes, and no caller goes on before the write is done."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from nominee.kubelet.checkpoint import Checkpoint, EncodedPods, encode
from nominee.kubelet.shell.checkpoints.checkpoint_file import CheckpointFile
from nominee.kubelet.shell.failpoints import CHECKPOINT_AFTER, CHECKPOINT_BEFORE
from nominee.machinery.runtime import host


class Checkpointer:
    """Writes `snapshot()` when it was marked as changed.

    `allocations_version()` gives the version of the allocations that a snapshot has.
    """

    def __init__(
        self,
        file: CheckpointFile,
        snapshot: Callable[[], Checkpoint],
        allocations_version: Callable[[], int],
        limiter: anyio.CapacityLimiter,
    ) -> None:
        self._file = file
        self._snapshot = snapshot
        self._allocations_version = allocations_version
        self._limiter = limiter
        self._encoded = EncodedPods()
        self._lock = anyio.Lock()
        self._version = 0
        self._saved = 0
        self._saved_allocations = 0

    def mark_changed(self) -> None:
        """Mark the state as newer than the file."""
        self._version += 1

    async def save_allocations(self, version: int) -> int:
        """Write the allocations, at least up to this version; return the version that is on disk.

        Raises OSError and FailpointError.
        """
        if self._saved_allocations < version:
            async with self._lock:
                if self._saved_allocations < version:
                    await self._write()
        return self._saved_allocations

    async def save(self) -> None:
        """Write the changes up to now, unless another caller just did. OSError, FailpointError."""
        version = self._version
        if self._saved >= version:
            return
        async with self._lock:
            if self._saved < version:
                await self._write()

    async def _write(self) -> None:
        await CHECKPOINT_BEFORE.hit(node=self._file.node)
        version, allocations = self._version, self._allocations_version()
        data = encode(self._snapshot(), self._encoded)
        await host.current().blocking(lambda: self._file.write(data), self._limiter)
        self._saved, self._saved_allocations = version, allocations
        await CHECKPOINT_AFTER.hit(node=self._file.node)

    async def remove(self) -> None:
        """Remove the file: the node is gone for good."""
        async with self._lock:
            await host.current().blocking(self._file.remove, self._limiter)
