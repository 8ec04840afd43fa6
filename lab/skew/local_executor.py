"""Run cells on this machine, a limited number at a time."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from nominee.lab.skew.cell_run import Job, WorkDirectory, keep, start, stop
from nominee.machinery.runtime.clock import Clock

_TICK_SECONDS = 1.0


@dataclass(slots=True)
class _Running:
    """A cell's process; `pidfd` becomes readable when it ends."""

    job: Job
    process: subprocess.Popen[bytes]
    pidfd: int
    deadline: float
    work: WorkDirectory
    problem: str = ""


class LocalExecutor:
    """Runs `jobs_max` cells at a time."""

    def __init__(self, jobs_max: int, clock: Clock) -> None:
        self._jobs_max, self._clock = jobs_max, clock

    def run(self, jobs: Sequence[Job], cells: Path) -> Generator[str | None, None, None]:
        """Yield the id of each job when its files are in the directory CELLS/ID; None once a second."""
        waiting = deque(jobs)
        running: dict[int, _Running] = {}
        with selectors.DefaultSelector() as selector, ExitStack() as stack:
            stack.callback(_end_all, running)
            while waiting or running:
                while waiting and len(running) < self._jobs_max:
                    cell = self._start(waiting.popleft())
                    running[cell.pidfd] = cell
                    selector.register(cell.pidfd, selectors.EVENT_READ)
                ended = [key.fd for key, _ in selector.select(_TICK_SECONDS)]
                for pidfd in ended:
                    selector.unregister(pidfd)
                    yield _finish(running.pop(pidfd), cells)
                now = self._clock.monotonic()
                for cell in running.values():
                    if now > cell.deadline:
                        cell.problem = f"the cell did not end within {cell.job.seconds_max:g} s"
                        cell.process.kill()
                if not ended:
                    yield None

    def _start(self, job: Job) -> _Running:
        work = WorkDirectory.make()
        process = start(job, work.path)
        deadline = self._clock.monotonic() + job.seconds_max
        return _Running(job, process, os.pidfd_open(process.pid), deadline, work)


def _finish(cell: _Running, cells: Path) -> str:
    os.close(cell.pidfd)
    code = cell.process.wait()
    problem = cell.problem or f"the cell's process ended with {code}"
    try:
        keep(cell.job, cell.work.path, cells / cell.job.id, problem)
    finally:
        cell.work.remove()
    return cell.job.id


def _end_all(running: dict[int, _Running]) -> None:
    """End the cells that run, and their clusters."""
    stop([cell.process for cell in running.values()])
    for cell in running.values():
        os.close(cell.pidfd)
        cell.work.remove()
