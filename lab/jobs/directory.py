"""The directory of a job: temporary, and removed also if a process that made one was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nominee.localcluster.supervisor.clock import wait_until
from nominee.machinery.process import file_lock

_PREFIX, _LOCK = "nominee-job-", "lock"
_REMOVE_SECONDS_MAX = 20.0
_LINE_CHARACTERS_MAX = 300


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """A temporary directory; `lock` is held until it is removed, or the process ends.

    Its name is short: a socket's path has at most 107 bytes.
    """

    path: Path
    lock: int

    @classmethod
    def make(cls) -> JobDirectory:
        """Make a directory; remove those whose processes on this machine were killed."""
        for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
            if file_lock.holder(lock) is None:
                shutil.rmtree(lock.parent, ignore_errors=True)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = path / "new"
        held = file_lock.acquire(lock)
        lock.rename(path / _LOCK)  # no other process sees it before it is locked
        return cls(path, held)

    def remove(self) -> None:
        """Remove the directory, in which processes of a killed cluster may still write for a moment."""

        def is_gone() -> bool:
            shutil.rmtree(self.path, ignore_errors=True)
            return not self.path.exists()

        wait_until(is_gone, _REMOVE_SECONDS_MAX)
        os.close(self.lock)


def last_line(file: Path) -> list[str]:
    """Return the last line that a process has printed to a file: the error, if it ended with one."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip()[:_LINE_CHARACTERS_MAX] for line in lines if line.strip()][-1:]
