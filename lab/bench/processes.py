"""The processes of a benchmark that create objects.

They end with the benchmark. All are started before this process runs gRPC in an event loop: a process that
has used gRPC must not fork.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nominee.localcluster.ending import kill
from nominee.machinery.process import child


class BenchError(RuntimeError):
    """The benchmark could not run; the message has the reason."""


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


@dataclass(frozen=True, slots=True)
class Created:
    """The result of a creator."""

    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


class Creator:
    """A process (`nominee.lab.bench.load.creator`) that waits for a line before it creates its series."""

    def __init__(self, directory: Path, series: Series) -> None:
        self._process = subprocess.Popen(
            [
                *child.command("nominee.lab.bench.load.creator", "--dir", str(directory)),
                *("--workload", series.workload, "--series", series.name, "--count", str(series.count)),
                *("--concurrency", str(series.concurrency), "--every-seconds", str(series.every_seconds)),
                *("--apiserver", series.apiserver),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_warm(self) -> None:
        """Wait until the process has imported its modules."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise BenchError("the process that creates pods failed; see its output above")

    def go(self) -> None:
        """Let the process start to create."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> Created:
        """Wait until the process ends; return its result.

        Raises:
            BenchError: it failed.
        """
        output, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise BenchError("the process that creates pods failed; see its output above")
        return Created(**json.loads(output))

    def kill(self) -> None:
        kill(self._process)


@contextmanager
def creators(directory: Path, wanted: Sequence[Series]) -> Iterator[dict[str, Creator]]:
    """Start a creator for each series; yield them by name, and kill them at the end."""
    started = {series.name: Creator(directory, series) for series in wanted}
    try:
        for creator in started.values():
            creator.wait_warm()
        yield started
    finally:
        for creator in started.values():
            creator.kill()
