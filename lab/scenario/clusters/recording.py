"""Record the history of a scenario's cluster while it runs, and check the invariants on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

from nominee.lab.history.connection import connect_to_etcd
from nominee.lab.history.etcd_observer import Coverage, EtcdObserver
from nominee.lab.history.etcd_watch import HistoryUnavailable
from nominee.lab.history.fold import Fold
from nominee.lab.history.history_file import NAME, HistoryFileError, HistoryReader, HistoryWriter
from nominee.lab.history.invariants.checking import checker
from nominee.lab.history.invariants.checking.evidence import Acknowledged, ComponentSettings
from nominee.lab.history.invariants.table import CHECKERS
from nominee.lab.history.revision import Revision
from nominee.lab.history.verification.verification import verify
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.runtime.clock import Clock

_RETRY_SECONDS: Final = 0.2


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
                await self._follow()
            except HistoryUnavailable:
                await self._clock.sleep(_RETRY_SECONDS)

    async def _follow(self) -> None:
        channel = await connect_to_etcd(self._directory)
        async with channel:
            observer = EtcdObserver(channel, fold=self._fold, coverage=self._coverage, now=self._clock.now)
            async with aclosing(observer.follow()) as batches:
                async for batch in batches:
                    self._writer.append(batch)

    async def violations(
        self, settings: ComponentSettings, acknowledged: Sequence[Acknowledged], without: Collection[str]
    ) -> Sequence[Violation]:
        """Check the history up to now; return the violations that were not returned before.

        `run` must have ended. Invariants in `without` are not checked.
        """
        self._writer.flush()
        names = [each.about.name for each in CHECKERS if each.about.name not in without]
        try:
            verification = await verify(
                self._directory, self._clock, names=names, settings=settings, acknowledged=acknowledged
            )
        except (HistoryUnavailable, HistoryFileError, OSError) as error:
            raise ClusterError(f"the history cannot be read: {error}") from None
        found = [
            each
            for result in verification.results
            for each in result.violations
            if each not in self._reported
        ]
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

    def revisions(self) -> list[Revision]:
        """Return the writes up to now. Raises: ClusterError."""
        self._writer.flush()
        try:
            return list(HistoryReader(self._path))
        except (HistoryFileError, OSError) as error:
            raise ClusterError(f"the history cannot be read: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
