"""The process of a job, from the side that started it."""

from __future__ import annotations

import json
import os
import pickle
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nominee.lab.jobs.job import Job
from nominee.localcluster.ending import end, kill
from nominee.localcluster.supervisor.clock import monotonic
from nominee.machinery.wire.values.scalars import Json

_JOB, _CHUNK_BYTES = "job.pickle", 1 << 16


class JobError(Exception):
    """A job's process has ended, or did not answer in time; the message has the reason."""


class JobProcess:
    """A process that runs a job in a directory. It ends when this process, or the calling thread, ends.

    `results` is the descriptor from which `read` gets its results. One that `talks` gets what `ask` sends on
    its standard input. Call `close` at the end.
    """

    def __init__(self, job: Job, directory: Path, *, talks: bool = False) -> None:
        file = directory / _JOB
        file.write_bytes(pickle.dumps((job.function, tuple(job.arguments))))
        self.job, self._rest, self._lines = job, b"", list[Json]()
        self.results, descriptor = os.pipe()
        printed = (directory / job.output).open("wb") if job.output else None
        try:
            self.process = subprocess.Popen(
                _command(file, descriptor),
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env={**os.environ, "TMPDIR": str(directory)} if job.own_temporary_files else None,
                text=True,
                process_group=0,
                pass_fds=(descriptor,),
            )
        except BaseException:
            os.close(self.results)
            raise
        finally:
            os.close(descriptor)
            if printed is not None:
                printed.close()

    def read(self) -> list[Json] | None:
        """Return the results that have arrived; wait for some. None: there are no others."""
        chunk = os.read(self.results, _CHUNK_BYTES)
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [json.loads(line) for line in lines]

    def receive(self, seconds_max: float) -> Json:
        """Return the next result.

        Raises:
            JobError: it does not come within this time, or the process has ended.
        """
        deadline = monotonic() + seconds_max
        while not self._lines:
            if not select.select([self.results], [], [], max(deadline - monotonic(), 0.0))[0]:
                raise JobError(f"no answer within {seconds_max:g} s")
            if (lines := self.read()) is None:
                code = self.process.wait(self.job.stop_seconds_max)
                raise JobError(f"the {self.job.noun} has ended with {code}")
            self._lines += lines
        return self._lines.pop(0)

    def ask(self, line: str, seconds_max: float) -> Json:
        """Send a line, and return the next result.

        Raises:
            JobError: as `receive`.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise JobError(f"the {self.job.noun} has ended") from None
        return self.receive(seconds_max)

    def leave(self, seconds_max: float) -> None:
        """End the input, and wait for the process to end; interrupt it after this time."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=seconds_max)

    def close(self) -> None:
        """End the process."""
        close([self])


def close(processes: Sequence[JobProcess]) -> None:
    """End processes: let them stop their clusters, and kill those that do not, or have none."""
    try:
        if stopping := [each for each in processes if each.job.stop_seconds_max]:
            limit = max(each.job.stop_seconds_max for each in stopping)
            end([each.process for each in stopping], limit)
    finally:
        for each in processes:
            kill(each.process)
            os.close(each.results)


def _command(file: Path, descriptor: int) -> list[str]:
    words = [str(os.getpid()), str(file), str(descriptor)]
    return [sys.executable, "-P", "-m", "nominee.lab.jobs.child", *words]
