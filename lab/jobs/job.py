"""A job, and the reports of executors about it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from nominee.machinery.wire.values.scalars import Json

Write = Callable[[Json], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A function that runs in a process of its own.

    `function` is MODULE:NAME. It is called with the job's directory, a function that writes one result, and
    `arguments`. `noun` names the job in messages.
    """

    id: str
    function: str
    arguments: Sequence[object] = ()
    noun: str = "process"
    seconds_max: float | None = None
    stop_seconds_max: float = 60.0
    """What it may take to stop its cluster after Ctrl-C. 0: it has none, and is killed at once."""
    output: str = ""
    """The file, in its directory, of what it prints; "": it prints where this process does."""
    own_temporary_files: bool = False
    """Its temporary files are in its directory, which is removed after it."""
    files: Sequence[str] = ()
    """Patterns of the files in its directory that an executor on another machine sends back."""
    version: str = field(default_factory=lambda: version("nominee"))
    """Nominee's: a worker on another machine may have another one."""


@dataclass(frozen=True, slots=True)
class Line:
    """One result of a job that runs, or has ended."""

    job: Job
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a job, after its last line.

    `problem` is "" if it ended with exit code 0. `directory` has its files until the executor continues;
    `ran_in` is what its path was for the job.
    """

    job: Job
    problem: str
    directory: Path
    ran_in: str
    seconds: float = 0.0
    commit: str = ""


Report = Line | Ended | None


class ExecutorError(RuntimeError):
    """The executor cannot run jobs; the message has the reason."""


class Executor(Protocol):
    """Runs jobs, in any order. `is_local`: on this machine. `width`: about how many at a time."""

    is_local: bool

    @property
    def width(self) -> int:
        """Return about how many jobs run at a time."""
        ...

    def run(self, jobs: Iterable[Job]) -> Generator[Report, None, None]:
        """Yield the lines and the end of each job, once, and None about once a second.

        The next job is taken from the iterable when there is room for it. What runs is ended when the
        iterator is closed.

        Raises:
            ExecutorError: jobs cannot be run.
        """
        ...
