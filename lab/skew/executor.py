"""Executors run the jobs of a matrix and yield the ids of those that have ended."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Protocol

from nominee.lab.skew.cell_run import Job


class ExecutorError(RuntimeError):
    """The executor cannot run jobs; the message has the reason."""


class Executor(Protocol):
    """Runs jobs, in any order."""

    def run(self, jobs: Sequence[Job], cells: Path) -> Generator[str | None, None, None]:
        """Yield the id of each job when its files are in the directory CELLS/ID, and sometimes None.

        None is yielded about once a second, so that the caller can show the time. What runs is killed when
        the iterator is closed.

        Raises:
            ExecutorError: jobs cannot be run.
        """
        ...
