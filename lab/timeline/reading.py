"""Read the time line of a history: of a file, of a cluster that is down, or of one that runs up to now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nominee.lab.history import process_logs
from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.process_logs import LogLine, LogTail, lines_of
from nominee.lab.history.revision import Revision
from nominee.lab.history.verification.reading import History
from nominee.lab.history.writers import Writer
from nominee.lab.timeline.document import TimeLine
from nominee.lab.timeline.marks import MESSAGES, Mark, of_lines, of_revision, of_violations

_LEAP_YEAR: Final = 2000
_WROTE: Final = "] Wrote "
_MARKED: Final = re.compile(rf"\] ({'|'.join(map(re.escape, MESSAGES))})( |$)")


@dataclass(slots=True)
class LogMarks:
    """The marks in the logs of a directory, each of which is read once."""

    directory: Path
    _tails: dict[Path, LogTail] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)

    def read(self, year: int) -> list[Mark]:
        """Return the marks since the last call; klog's format has no year. Raises: OSError."""
        found: list[LogLine] = []
        for path in process_logs.log_files(self.directory):
            tail = self._tails.setdefault(path, LogTail(path))
            with suppress(FileNotFoundError):  # removed since it was listed
                found += lines_of(filter(_MARKED.search, tail.read()), year)
        return list(of_lines(sorted(found, key=lambda line: line.time), self._started))


@dataclass(slots=True)
class Reader:
    """Makes a time line of a history, and its marks; with `settings` those of broken invariants, too."""

    timeline: TimeLine
    logs: Path
    """The directory with the logs of the processes."""
    settings: ComponentSettings | None = None
    history: History = field(default_factory=History)
    marks: list[Mark] = field(default_factory=list)
    _writers: Mapping[int, Writer] = field(default_factory=dict)
    _check: Check | None = None
    _times: dict[int, float] = field(default_factory=dict)

    def read_file(self, path: Path) -> None:
        """Read a history file. Raises: HistoryFileError, OSError."""
        self._begin()
        self.history.read_file(path, self.observe)
        self._finish()

    async def read(self, directory: Path) -> None:
        """Read the history of a state directory. Raises: HistoryUnavailable, HistoryFileError, OSError."""
        self._begin()
        await self.history.read(directory, self.observe)
        self._finish()

    def observe(self, revision: Revision) -> None:
        """Add a revision."""
        if self._check is not None:
            self._times[revision.revision] = revision.time
            self._check.observe(revision)
        mark = of_revision(revision)
        if mark is not None:
            self.marks.append(mark)
        self.timeline.add(revision, self._writers.get(revision.revision))

    def _begin(self) -> None:
        log = process_logs.read(process_logs.log_files(self.logs), _LEAP_YEAR, lambda text: _WROTE in text)
        self._writers = process_logs.writers(log)
        self._check = None if self.settings is None else Check(self.settings)

    def _finish(self) -> None:
        """Add the broken invariants. Of later revisions neither invariants nor the log are read."""
        self.timeline.coverage = self.history.coverage
        if self._check is not None:
            results = self._check.finish(Evidence(now=self.history.fold.time))
            found = [violation for result in results for violation in result.violations]
            self.marks += of_violations(found, self._times)
        self._writers, self._check, self._times = {}, None, {}
