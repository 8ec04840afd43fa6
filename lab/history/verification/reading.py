"""Read the history of a cluster that runs or is down: from its history file, and from etcd."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from nominee.lab.history import history_file
from nominee.lab.history.connection import connect_to_etcd
from nominee.lab.history.etcd_observer import Coverage, EtcdObserver
from nominee.lab.history.etcd_watch import HistoryUnavailable
from nominee.lab.history.fold import Fold
from nominee.lab.history.history_file import HistoryFileError, HistoryReader
from nominee.lab.history.revision import Revision
from nominee.lab.history.verification.etcd_alone import etcd_alone, has_data
from nominee.localcluster.supervisor.directory import StateDirectory


def is_running(directory: Path) -> bool:
    """Return whether a process of the cluster runs."""
    return bool(StateDirectory(directory).live_run_files())


def readable(directory: Path) -> AbstractContextManager[None]:
    """Return a context in which the etcd of a cluster answers: one that is down is started for it.

    Entering it raises EtcdAloneError.
    """
    alone = not is_running(directory) and has_data(directory)
    return etcd_alone(directory) if alone else nullcontext()


@dataclass(slots=True)
class History:
    """A reader of a history: the state at its end, and the parts that are missing."""

    fold: Fold = field(default_factory=Fold)
    coverage: Coverage = field(default_factory=Coverage)
    revisions: int = 0
    """Writes, without the states where the history begins or goes on after a gap."""
    missing_rest: str = ""
    """Why the writes after the history file are missing, if etcd does not run and the file is not whole."""
    is_of_etcd: bool = False
    """Whether etcd was read: else later writes than those of the history file are unknown."""

    def read_file(self, path: Path, observe: Callable[[Revision], object]) -> None:
        """Let `observe` have the revisions of a history file. Raises: HistoryFileError, OSError."""
        reader = HistoryReader(path)
        self.fold, self.coverage = reader.fold, reader.coverage
        for revision in reader:
            self._read(revision, observe)
        self.missing_rest = reader.missing_rest

    async def read(self, directory: Path, observe: Callable[[Revision], object]) -> None:
        """Let `observe` have the revisions of a state directory: of its history file, then those of etcd.

        Raises:
            HistoryUnavailable: etcd does not answer, and there is no history file.
            HistoryFileError: the file is another one, or no write can be read from it or from etcd.
            OSError: the history file cannot be read.
        """
        path = directory / history_file.NAME
        if path.exists():
            self.read_file(path, observe)
        try:
            channel = await connect_to_etcd(directory)
            try:
                observer = EtcdObserver(channel, fold=self.fold, coverage=self.coverage)
                async for batch in observer.read():
                    for revision in batch:
                        self._read(revision, observe)
                self.missing_rest, self.is_of_etcd = "", True
            finally:
                await channel.close()
        except HistoryUnavailable as error:
            if not self.revisions and path.exists():
                reason = self.missing_rest or "it is empty"
                raise HistoryFileError(f"no write can be read from {path}: {reason}; and {error}") from None
            if not self.revisions:
                raise

    def _read(self, revision: Revision, observe: Callable[[Revision], object]) -> None:
        observe(revision)
        self.revisions += not revision.is_state
