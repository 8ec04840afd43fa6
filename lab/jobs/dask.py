"""Run jobs on the workers of a Dask cluster (the extra `dask` of the package).

Dask gives the jobs of a worker that died to another worker. A worker sends the results of a job and its files
when the job has ended, so that workers need no common disk, and a job counts once.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Collection, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from nominee.lab.extras import installation
from nominee.lab.jobs.directory import JobDirectory, last_line
from nominee.lab.jobs.job import Ended, ExecutorError, Job, Line, Report
from nominee.lab.jobs.local import LocalExecutor
from nominee.localcluster.supervisor.clock import monotonic
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS_MAX = 30
WORKERS_SECONDS_MAX = 60.0
"""How long the cluster may be without any worker."""
RETRIES = 3
"""How often a job runs again after an error of the worker (Dask's own limit is for workers that die)."""
_TICK_SECONDS = 1.0
_WAITING_FOR_EACH_THREAD = 2
"""Jobs that are submitted for each thread of a worker: one runs, one waits."""
_OUTPUT = "output.txt"
_FILE_BYTES_MAX = 8 << 20


@dataclass(frozen=True, slots=True)
class Packed:
    """A job that has ended on a worker: its lines, its end, and its files as a ZIP archive."""

    lines: list[Json]
    ended: Ended
    files: bytes = b""


def run_job(job: Job) -> Packed:
    """Run a job on a worker."""
    if (own := version("nominee")) != job.version:
        problem = f"the worker has Nominee {own}, and the run {job.version}"
        return Packed([], Ended(job=job, problem=problem, directory=Path(), ran_in=""))
    printed = job.output or _OUTPUT
    lines: list[Json] = []
    for report in LocalExecutor().run([replace(job, output=printed)]):
        if isinstance(report, Line):
            lines.append(report.value)
        elif isinstance(report, Ended):
            files = _pack(report.directory, [*job.files, printed])
            problem = report.problem
            if problem and not job.output:
                problem = ": ".join([problem, *last_line(report.directory / printed)])
            return Packed(lines, replace(report, job=job, problem=problem), files)
    raise AssertionError("a job ends")


def _pack(folder: Path, patterns: Iterable[str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted({file for pattern in patterns for file in folder.glob(pattern)}):
            os.truncate(file, min(file.stat().st_size, _FILE_BYTES_MAX))
            archive.write(file, file.relative_to(folder))
    return buffer.getvalue()


class DaskExecutor:
    """Runs jobs on the cluster of a scheduler address."""

    is_local = False
    width = 1

    def __init__(self, address: str) -> None:
        self._address = address

    def run(self, jobs: Iterable[Job]) -> Generator[Report, None, None]:
        """Yield the lines and the end of each job, and None about once a second.

        Raises:
            ExecutorError: Dask is not installed, the scheduler does not answer or ends, or there are no
                workers.
        """
        try:
            from distributed import Client
        except ModuleNotFoundError:
            raise ExecutorError(f"--executor dask needs Dask: {installation('dask')}") from None
        try:
            client = Client(self._address, timeout=_CONNECT_SECONDS_MAX)
        except (OSError, TimeoutError, ValueError) as error:
            raise ExecutorError(f"no Dask scheduler at {self._address}: {error}") from None
        with client:
            yield from self._run(client, jobs)

    def _run(self, client: Client, jobs: Iterable[Job]) -> Generator[Report, None, None]:
        run_id = uuid4().hex[:8]  # keys of an earlier run would return its results
        remaining = enumerate(jobs)
        waiting: dict[Future, Job] = {}
        worked = monotonic()
        try:
            while True:
                threads = self._threads(client)
                limit = max(threads, 1) * _WAITING_FOR_EACH_THREAD
                for number, job in islice(remaining, max(limit - len(waiting), 0)):
                    key = f"{job.id}-{run_id}-{number}"
                    waiting[client.submit(run_job, job, key=key, retries=RETRIES, pure=False)] = job
                if not waiting:
                    return
                ended = _ended(waiting)
                for future in ended:
                    job = waiting.pop(future)
                    if future.cancelled():
                        raise self._lost()
                    yield from _unpacked(future, job)
                    future.release()
                now = monotonic()
                if ended or threads:
                    worked = now
                elif now - worked > WORKERS_SECONDS_MAX:
                    raise ExecutorError(
                        f"Dask's scheduler had no worker for {WORKERS_SECONDS_MAX:g} s; "
                        f"start some: dask worker {self._address}"
                    )
                if not ended:
                    yield None
        finally:
            client.cancel(list(waiting), force=True)

    def _threads(self, client: Client) -> int:
        """Return how many threads the workers have. Raises: ExecutorError."""
        try:
            return sum(client.nthreads().values())
        except (OSError, TimeoutError):
            raise self._lost() from None

    def _lost(self) -> ExecutorError:
        return ExecutorError(f"the connection to Dask's scheduler at {self._address} was lost")


def _ended(waiting: Collection[Future]) -> list[Future]:
    """Return the futures that are done; wait up to a second for the first."""
    from distributed import CancelledError, wait

    # Dask cancels them all when the scheduler is gone.
    with suppress(TimeoutError, CancelledError):
        wait(list(waiting), timeout=_TICK_SECONDS, return_when="FIRST_COMPLETED")
    return [future for future in waiting if future.done()]


def _unpacked(future: Future, job: Job) -> Generator[Report, None, None]:
    """Yield the lines of a worker, with the files in a directory of this machine."""
    if future.status == "finished":
        packed: Packed = future.result()
    else:
        problem = f"Dask could not run the {job.noun}: {future.exception() or future.status}"
        packed = Packed([], Ended(job=job, problem=problem, directory=Path(), ran_in=""))
    directory = JobDirectory.make()
    try:
        yield from (Line(job, value) for value in packed.lines)
        if packed.files:
            with zipfile.ZipFile(io.BytesIO(packed.files)) as archive:
                archive.extractall(directory.path)
        yield replace(packed.ended, job=job, directory=directory.path)
    finally:
        directory.remove()
