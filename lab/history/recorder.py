"""Record the history of a running cluster in its history file."""

from __future__ import annotations

from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

import anyio
import grpc.aio

from nominee.lab.history import history_file
from nominee.lab.history.connection import connect_to_etcd
from nominee.lab.history.etcd_observer import Coverage, EtcdObserver
from nominee.lab.history.etcd_watch import HistoryUnavailable
from nominee.lab.history.fold import Fold
from nominee.lab.history.history_file import HistoryWriter, recover
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock

FLUSH_SECONDS: Final = 1.0
"""What a killed recorder loses at most; the next one reads it again from etcd."""
RETRY_SECONDS: Final = 0.5
LAST_SECONDS_MAX: Final = 5.0

_log = logs.get()


class Recorder:
    """Appends every write of a cluster to D/history.gz.

    A file of an earlier run is continued; what was compacted meanwhile is a gap in it.
    """

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        path = directory / history_file.NAME
        fold, coverage = Fold(), Coverage()
        if path.exists():
            before = recover(path)
            fold, coverage = before.fold, before.coverage
            if before.rest_bytes:
                text = "The end of the history file could not be read, and is recorded again"
                _log.warning(text, after_revision=fold.revision, bytes=before.rest_bytes)
        self._fold, self._coverage = fold, coverage
        self.writer = HistoryWriter(path, coverage)

    async def run(self) -> None:
        """Record until cancelled, or until the file has reached its limit; then close the file.

        Etcd may be down meanwhile.
        """
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._flush_regularly)
                await self.record(RETRY_SECONDS)
                group.cancel_scope.cancel()
                _log.warning("the history file has reached its limit; nothing more is recorded")
        finally:
            with anyio.move_on_after(LAST_SECONDS_MAX, shield=True), suppress(HistoryUnavailable):
                await self._read_rest()
            self.writer.close()

    async def record(self, retry_seconds: float) -> None:
        """Record until cancelled, or until the file has reached its limit; etcd may be down meanwhile."""
        while not self.writer.is_full:
            with suppress(HistoryUnavailable):  # it is not up yet, or is started again
                await self._follow()
            await self._clock.sleep(retry_seconds)

    async def _follow(self) -> None:
        channel = await connect_to_etcd(self._directory)
        try:
            async with aclosing(self._observer(channel).follow()) as batches:
                async for batch in batches:
                    self.writer.append(batch)
                    if self.writer.is_full:
                        return
        finally:
            await channel.close()

    async def _read_rest(self) -> None:
        """Record the present state of etcd when the recording ends."""
        channel = await connect_to_etcd(self._directory)
        try:
            async with aclosing(self._observer(channel).read()) as batches:
                async for batch in batches:
                    self.writer.append(batch)
        finally:
            await channel.close()

    def _observer(self, channel: grpc.aio.Channel) -> EtcdObserver:
        return EtcdObserver(channel, fold=self._fold, coverage=self._coverage, now=self._clock.now)

    async def _flush_regularly(self) -> None:
        while True:
            await self._clock.sleep(FLUSH_SECONDS)
            self.writer.flush()
