"""Record the history of a scenario's cluster while it runs, and check the invariants on it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

import anyio

from machinery.runtime.clock import Clock
from nominee.history.connection import connect_to_etcd
from nominee.history.etcd_observer import Coverage, EtcdObserver
from nominee.history.etcd_watch import HistoryUnavailable
from nominee.history.fold import Fold
from nominee.history.history_file import NAME, HistoryReader, HistoryWriter
from nominee.invariants import checker
from nominee.invariants.check import check
from nominee.invariants.evidence import Evidence, Settings
from nominee.scenario.result import Violation

_RETRY_SECONDS: Final = 0.2
_CATCH_UP_SECONDS_MAX: Final = 10.0


class Recording:
    """The history of a cluster in D/history.gz, from its first write on; `run` records it."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory, self._clock = directory, clock
        self._coverage, self._fold = Coverage(), Fold()
        self._path = directory / NAME
        self._path.unlink(missing_ok=True)
        self._writer = HistoryWriter(self._path, self._coverage)
        self._reported: set[checker.Violation] = set()

    async def run(self) -> None:
        """Record until cancelled; connect again while etcd is down."""
        while True:
            try:
                await self._read(to_end=False)
            except HistoryUnavailable:
                await self._clock.sleep(_RETRY_SECONDS)

    async def _read(self, *, to_end: bool) -> None:
        channel = await connect_to_etcd(self._directory)
        async with channel:
            observer = EtcdObserver(channel, fold=self._fold, coverage=self._coverage, now=self._clock.now)
            batches = observer.read() if to_end else observer.follow()
            async with aclosing(batches):
                async for batch in batches:
                    self._writer.append(batch)

    async def violations(self, settings: Settings, evidence: Evidence) -> Sequence[Violation]:
        """Check the history up to now; return the violations that were not returned before.

        `run` must have ended. A history that ends early, since etcd is down, is checked as far as it goes.
        """
        with anyio.move_on_after(_CATCH_UP_SECONDS_MAX):
            with suppress(HistoryUnavailable):
                await self._read(to_end=True)
        self._writer.flush()
        results = check(HistoryReader(self._path), settings, evidence)
        found = [each for result in results for each in result.violations if each not in self._reported]
        self._reported.update(found)
        return [
            Violation(
                invariant=each.invariant,
                message=each.message,
                revisions=each.revisions,
                objects=each.objects,
            )
            for each in found
        ]

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
