"""Run jobs on this machine, a limited number at a time."""

from __future__ import annotations

import selectors
import subprocess
from collections.abc import Generator, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

from nominee.lab.commit import commit
from nominee.lab.jobs.directory import JobDirectory
from nominee.lab.jobs.job import Ended, Job, Line, Report
from nominee.lab.jobs.process import JobProcess, close
from nominee.localcluster.supervisor.clock import monotonic

_TICK_SECONDS = 1.0
_EXIT_SECONDS_MAX = 20.0
"""What a process may take to exit after its last result."""


@dataclass(slots=True)
class _Running:
    """A job that runs."""

    job: Job
    directory: JobDirectory
    process: JobProcess
    began: float
    problem: str = ""

    @classmethod
    def start(cls, job: Job) -> _Running:
        """Start a job in a directory of its own."""
        directory = JobDirectory.make()
        try:
            return cls(job, directory, JobProcess(job, directory.path), monotonic())
        except BaseException:
            directory.remove()
            raise

    def kill_if_late(self) -> None:
        """Kill the process if its time is over; its results then end."""
        limit = self.job.seconds_max
        if limit is not None and monotonic() > self.began + limit:
            self.problem = f"the {self.job.noun} did not end within {limit:g} s"
            self.process.process.kill()

    def ended(self) -> Ended:
        """Wait for the exit after the last result, and return the report of it."""
        try:
            code = self.process.process.wait(_EXIT_SECONDS_MAX)
            problem = f"the process of the {self.job.noun} ended with exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            problem = f"the process of the {self.job.noun} did not exit"
        return Ended(
            job=self.job,
            problem=self.problem or problem,
            directory=self.directory.path,
            ran_in=str(self.directory.path),
            seconds=monotonic() - self.began,
            commit=commit(),
        )


class LocalExecutor:
    """Runs `width` jobs at a time."""

    is_local = True

    def __init__(self, width: int = 1) -> None:
        self.width = width

    def run(self, jobs: Iterable[Job]) -> Generator[Report, None, None]:
        """Yield the lines and the end of each job, and None about once a second."""
        waiting = iter(jobs)
        running: list[_Running] = []
        with selectors.DefaultSelector() as selector, ExitStack() as stack:
            stack.callback(_end, running)
            while True:
                for job in islice(waiting, self.width - len(running)):
                    running.append(started := _Running.start(job))
                    selector.register(started.process.results, selectors.EVENT_READ, started)
                if not running:
                    return
                found = selector.select(_TICK_SECONDS)
                for key, _ in found:
                    each: _Running = key.data
                    lines = each.process.read()
                    yield from (Line(each.job, value) for value in lines or ())
                    if lines is None:
                        selector.unregister(each.process.results)
                        yield each.ended()
                        running.remove(each)
                        _end([each])
                for each in running:
                    each.kill_if_late()
                if not found:
                    yield None


def _end(running: list[_Running]) -> None:
    """End jobs, and their clusters; remove their directories."""
    try:
        close([each.process for each in running])
    finally:
        for each in running:
            each.directory.remove()
