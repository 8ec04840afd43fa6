"""The processes of a benchmark: the cluster under test and those that create objects. None outlives us.

All are started before this process loads gRPC into a running loop: who has used gRPC must not fork.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nominee.supervisor.children import before_exec
from nominee.supervisor.client import NotRunningError, RefusedError, call
from nominee.supervisor.clock import wait_until
from nominee.supervisor.directory import StateDirectory

_READY_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 30.0


class BenchError(RuntimeError):
    """The benchmark could not be run; the text says why."""


@contextmanager
def cluster(
    directory: Path, up_options: Sequence[str], components: str = "etcd,apiserver,scheduler"
) -> Iterator[None]:
    """`nominee up` in a directory, ready; down at the end. BenchError with what it said when it fails."""
    command = [
        *(sys.executable, "-P", "-m", "nominee.cli", "up", "--dir", str(directory)),
        *("--components", components, *up_options),
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=before_exec(),
    )
    socket = StateDirectory(directory).run / "supervisor.sock"
    try:
        wait_until(lambda: socket.exists() or process.poll() is not None, _READY_SECONDS_MAX)
        try:
            call(StateDirectory(directory), "wait", timeout_seconds=_READY_SECONDS_MAX)
        except (NotRunningError, RefusedError, TimeoutError) as error:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=_STOP_SECONDS_MAX)[1]
            raise BenchError(said.strip() or str(error)) from None
        yield
    finally:
        for _ in range(2):  # the second signal kills who does not end at once
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        process.communicate(timeout=_STOP_SECONDS_MAX)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and close its pipes.

    Not by `communicate`, which fails after a call of it that Ctrl-C interrupted.
    """
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What a creator is to create: `count` objects of a workload's series, all at once or paced."""

    workload: str
    name: str
    count: int
    concurrency: int
    every_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Created:
    """What a creator did."""

    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


class Creator:
    """A process that waits, warm, until it is told to create a series (`nominee.bench.creator`)."""

    def __init__(self, directory: Path, series: Series) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "nominee.bench.creator", "--dir", str(directory)),
                *("--workload", series.workload, "--series", series.name, "--count", str(series.count)),
                *("--concurrency", str(series.concurrency), "--every-seconds", str(series.every_seconds)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=before_exec(),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_warm(self) -> None:
        """Until it has loaded what it needs."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise BenchError("the creating process failed; see its words above")

    def go(self) -> None:
        """Begin."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> Created:
        """Waits for its end. BenchError when it failed."""
        output, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise BenchError("the creating process failed; see its words above")
        return Created(**json.loads(output))

    def kill(self) -> None:
        kill(self._process)


@contextmanager
def creators(directory: Path, wanted: Sequence[Series]) -> Iterator[dict[str, Creator]]:
    """A warm creator for each series, by its name; killed at the end if they still run."""
    started = {series.name: Creator(directory, series) for series in wanted}
    try:
        for creator in started.values():
            creator.wait_warm()
        yield started
    finally:
        for creator in started.values():
            creator.kill()
