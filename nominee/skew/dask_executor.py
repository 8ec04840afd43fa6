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
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from nominee.skew.cell_run import RESULT, Job, keep, remove, start, stop
from nominee.skew.executor import ExecutorError

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS_MAX = 30
_TICK_SECONDS = 1.0
RETRIES = 3
"""How often a cell runs again after an error of the worker (Dask's own limit is for workers that die)."""


def run_job(job: Job) -> bytes:
    """Run a cell on a worker; return its files as a ZIP archive."""
    folder = Path(tempfile.mkdtemp(prefix="nominee-skew-"))
    try:
        work, kept = folder / "w", folder / "kept"
        work.mkdir()
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
        remove(folder)


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

    def __init__(self, address: str) -> None:
        self._address = address

    def run(self, jobs: Sequence[Job], cells: Path) -> Generator[str | None, None, None]:
        """Yield the id of each job when its files are in the directory CELLS/ID; None once a second.

        Raises:
            ExecutorError: Dask is not installed, or the scheduler does not answer.
        """
        try:
            from distributed import Client
        except ModuleNotFoundError:
            raise ExecutorError("--executor dask needs Dask: pip install nominee[dask]") from None
        try:
            client = Client(self._address, timeout=_CONNECT_SECONDS_MAX)
        except (OSError, TimeoutError, ValueError) as error:
            raise ExecutorError(f"no Dask scheduler at {self._address}: {error}") from None
        with client:
            yield from _run(client, jobs, cells)


def _run(client: Client, jobs: Sequence[Job], cells: Path) -> Generator[str | None, None, None]:
    from distributed import wait

    run_id = uuid4().hex[:8]  # keys of an earlier run would return its results
    waiting: dict[Future, Job] = {
        client.submit(run_job, job, key=f"{job.id}-{run_id}", retries=RETRIES, pure=False): job
        for job in jobs
    }
    try:
        while waiting:
            with suppress(TimeoutError):
                wait(list(waiting), timeout=_TICK_SECONDS, return_when="FIRST_COMPLETED")
            ended = [future for future in waiting if future.done()]
            for future in ended:
                job = waiting.pop(future)
                _store(future, job, cells)
                future.release()
                yield job.id
            if not ended:
                yield None
    finally:
        client.cancel(list(waiting), force=True)


def _store(future: Future, job: Job, cells: Path) -> None:
    if future.status == "finished":
        unpack(future.result(), cells / job.id)
        return
    with tempfile.TemporaryDirectory(prefix="nominee-skew-") as empty:
        work = Path(empty)
        (work / "scenario.yaml").write_text(job.text, encoding="utf-8")
        keep(job, work, cells / job.id, f"Dask could not run the cell: {future.exception() or future.status}")
