"""Run cells on the workers of a Dask cluster (the extra `dask` of the package).

Dask gives the cells of a worker that died to another worker. A cell's result is its files as one archive, so
that workers need no common disk, and it counts once: the first that arrives for a job.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Collection, Generator, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from nominee.lab.extras import installation
from nominee.lab.skew.cell_run import RESULT, Job, WorkDirectory, keep, start, stop
from nominee.lab.skew.executor import ExecutorError
from nominee.machinery.runtime.clock import Clock

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS_MAX = 30
WORKERS_SECONDS_MAX = 60.0
"""How long the cluster may be without any worker."""
_TICK_SECONDS = 1.0
RETRIES = 3
"""How often a cell runs again after an error of the worker (Dask's own limit is for workers that die)."""


def run_job(job: Job) -> bytes:
    """Run a cell on a worker; return its files as a ZIP archive."""
    folder = WorkDirectory.make()
    try:
        work, kept = folder.path / "w", folder.path / "kept"
        work.mkdir()
        if (own := version("nominee")) != job.version:
            keep(job, work, kept, f"the worker has Nominee {own}, and the run {job.version}")
            return _archive(kept)
        process = start(job, work)
        problem = ""
        try:
            code = process.wait(timeout=job.seconds_max)
            problem = f"the cell's process ended with {code}"
        except subprocess.TimeoutExpired:
            problem = f"the cell did not end within {job.seconds_max:g} s"
        finally:
            if process.poll() is None:
                stop([process])
        keep(job, work, kept, problem)
        return _archive(kept)
    finally:
        folder.remove()


def _archive(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return buffer.getvalue()


def unpack(data: bytes, target: Path) -> None:
    """Write the files of an archive to a directory, all or none: RESULT comes last."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = sorted(archive.namelist(), key=lambda name: name == RESULT)
        for name in names:
            archive.extract(name, target)


class DaskExecutor:
    """Runs cells on the cluster of a scheduler address."""

    def __init__(self, address: str, clock: Clock) -> None:
        self._address, self._clock = address, clock

    def run(self, jobs: Sequence[Job], cells: Path) -> Generator[str | None, None, None]:
        """Yield the id of each job when its files are in the directory CELLS/ID; None once a second.

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
            yield from self._run(client, jobs, cells)

    def _run(self, client: Client, jobs: Sequence[Job], cells: Path) -> Generator[str | None, None, None]:
        waiting = _submit(client, jobs)
        worked = self._clock.monotonic()
        try:
            while waiting:
                ended = _ended(waiting)
                for future in ended:
                    job = waiting.pop(future)
                    if future.cancelled():
                        raise ExecutorError(f"the connection to Dask's scheduler at {self._address} was lost")
                    _store(future, job, cells)
                    future.release()
                    yield job.id
                now = self._clock.monotonic()
                if ended or client.nthreads():
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


def _submit(client: Client, jobs: Sequence[Job]) -> dict[Future, Job]:

    run_id = uuid4().hex[:8]  # keys of an earlier run would return its results
    return {
        client.submit(run_job, job, key=f"{job.id}-{run_id}", retries=RETRIES, pure=False): job
        for job in jobs
    }


def _ended(waiting: Collection[Future]) -> list[Future]:
    """Return the futures that are done; wait up to a second for the first."""
    from distributed import CancelledError, wait

    # Dask cancels them all when the scheduler is gone.
    with suppress(TimeoutError, CancelledError):
        wait(list(waiting), timeout=_TICK_SECONDS, return_when="FIRST_COMPLETED")
    return [future for future in waiting if future.done()]


def _store(future: Future, job: Job, cells: Path) -> None:
    if future.status == "finished":
        unpack(future.result(), cells / job.id)
        return
    with tempfile.TemporaryDirectory(prefix="nominee-skew-") as empty:
        work = Path(empty)
        (work / "scenario.yaml").write_text(job.text, encoding="utf-8")
        keep(job, work, cells / job.id, f"Dask could not run the cell: {future.exception() or future.status}")
