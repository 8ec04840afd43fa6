"""Record the history of a scenario's cluster while it runs, and check the invariants on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from nominee.lab.history.etcd_watch import HistoryUnavailable
from nominee.lab.history.history_file import NAME, HistoryFileError, HistoryReader
from nominee.lab.history.invariants.checking import checker
from nominee.lab.history.invariants.checking.evidence import Acknowledged, ComponentSettings
from nominee.lab.history.invariants.table import CHECKERS
from nominee.lab.history.recorder import Recorder
from nominee.lab.history.revision import Revision
from nominee.lab.history.verification.verification import verify
from nominee.lab.scenario.cluster import violation_of
from nominee.lab.scenario.result import Violation
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.runtime.clock import Clock

_RETRY_SECONDS: Final = 0.2


class Recording:
    """The history of a cluster in D/history.gz, from its first write on; `run` records it."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory, self._clock = directory, clock
        self._path = directory / NAME
        self._path.unlink(missing_ok=True)
        self._recorder = Recorder(directory, clock)
        self._reported: set[checker.Violation] = set()

    async def run(self) -> None:
        """Record until cancelled; connect again while etcd is down."""
        await self._recorder.record(_RETRY_SECONDS)

    async def violations(
        self, settings: ComponentSettings, acknowledged: Sequence[Acknowledged], without: Collection[str]
    ) -> Sequence[Violation]:
        """Check the history up to now; return the violations that were not returned before.

        `run` must have ended. Invariants in `without` are not checked.
        """
        self._recorder.writer.flush()
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
        return list(map(violation_of, found))

    def revisions(self) -> list[Revision]:
        """Return the writes up to now. Raises: ClusterError."""
        self._recorder.writer.flush()
        try:
            return list(HistoryReader(self._path))
        except (HistoryFileError, OSError) as error:
            raise ClusterError(f"the history cannot be read: {error}") from None
