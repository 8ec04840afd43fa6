"""The processes of a benchmark that create, change and watch objects.

They end with the benchmark. All are started before this process runs gRPC in an event loop: a process that
has used gRPC must not fork.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nominee.lab.jobs.directory import JobDirectory
from nominee.lab.jobs.job import Job
from nominee.lab.jobs.process import JobError, JobProcess
from nominee.machinery.wire.values.scalars import Json

_SECONDS_MAX: Final = 3600.0
_STOP_SECONDS_MAX: Final = 5.0


class BenchError(RuntimeError):
    """The benchmark could not run; the message has the reason."""


class Helper:
    """A process that runs a function (MODULE:NAME) as a job: it reports that it is ready, and waits for `go`.

    `work` completes "the process that ...".
    """

    def __init__(self, work: str, function: str, *arguments: object) -> None:
        self._work, self._directory = work, JobDirectory.make()
        job = Job(id=work, function=function, arguments=arguments, stop_seconds_max=_STOP_SECONDS_MAX)
        self._process = JobProcess(job, self._directory.path, talks=True)

    @property
    def pid(self) -> int:
        return self._process.process.pid

    def receive(self, seconds_max: float = _SECONDS_MAX) -> Json:
        """Return what the process reports next.

        Raises:
            BenchError: it failed, or does not report within this time.
        """
        try:
            return self._process.receive(seconds_max)
        except JobError:
            raise BenchError(f"the process that {self._work} failed; see its output above") from None

    def go(self) -> None:
        """Let the process go on."""
        assert self._process.process.stdin is not None
        self._process.process.stdin.write("go\n")
        self._process.process.stdin.flush()

    def close(self) -> None:
        """End the process."""
        self._process.close()
        self._directory.remove()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A series of objects for one creator: `count` objects of a workload, at once or at an interval.

    `apiserver` is the name of the server that the creator asks.
    """

    workload: str
    name: str
    count: int
    concurrency: int
    every_seconds: float = 0.0
    apiserver: str = "apiserver"


@contextmanager
def creators(directory: Path, wanted: Sequence[Series]) -> Iterator[dict[str, Helper]]:
    """Start a creator for each series; yield them by name, and end them at the end.

    The result of a creator is how many objects it created a second.
    """
    function = "nominee.lab.bench.load.creator:create_series"
    started = {series.name: Helper("creates pods", function, directory, series) for series in wanted}
    try:
        for creator in started.values():
            creator.receive()
        yield started
    finally:
        for creator in started.values():
            creator.close()
