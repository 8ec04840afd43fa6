"""Cells on Dask workers: one worker dies during the run, and no cell is lost or counted twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.nominee.skew.fake_cell import FOLDER, started_by
from tests.nominee.skew.matrices import CLEARING, HEADER, planned
from tests.support.eventually import eventually_sync

ROOT = Path(__file__).resolve().parents[3]
WORKERS = 3
CELLS = 10


@contextmanager
def _process(log: Path, environment: Mapping[str, str], *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-P", *words],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_worker_that_dies_loses_no_cell(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(HEADER + CLEARING, encoding="utf-8")
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'build/pb'}", FOLDER: str(tmp_path)}
    scheduler_file, report = tmp_path / "scheduler.json", tmp_path / "report"
    with ExitStack() as stack:

        def start(name: str, *words: str) -> subprocess.Popen[bytes]:
            return stack.enter_context(_process(tmp_path / f"{name}.log", environment, *words))

        options = (
            "--port",
            "0",
            "--host",
            "127.0.0.1",
            "--no-dashboard",
            "--scheduler-file",
            str(scheduler_file),
        )
        start("scheduler", "-m", "distributed.cli.dask_scheduler", *options)
        address = eventually_sync(lambda: _address(scheduler_file))
        workers = []
        for number in range(WORKERS):
            one_thread = (address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
            local = ("--local-directory", str(tmp_path / f"w{number}"), "--host", "127.0.0.1")
            words = ("-m", "tests.nominee.skew.dask_worker", *one_thread, *local)
            workers.append(start(f"worker-{number}", *words))
        command = ("skew", "run", str(matrix), "--full", "--report", str(report))
        dask = ("--executor", "dask", "--scheduler-address", address)
        run = start("run", "-m", "nominee.cli", *command, *dask)
        first = eventually_sync(lambda: started_by(tmp_path), lambda found: len(found) == WORKERS)
        name, _, worker = first[0]
        dying = next(process for process in workers if process.pid == worker)
        dying.kill()
        dying.wait()
        (tmp_path / "released").touch()
        assert run.wait(timeout=120) == 0, (tmp_path / "run.log").read_text(encoding="utf-8")
    counts = Counter(each for each, _, _ in started_by(tmp_path))
    assert len(counts) == CELLS
    assert {each: count for each, count in counts.items() if count > 1} == {name: 2}
    document = json.loads((report / "skew.json").read_text(encoding="utf-8"))
    cells = [cell["id"] for cell in document["cells"]]
    assert sorted(cells) == sorted(each.id for each in planned(tmp_path, CLEARING, full=True).cells)
    assert document["summary"].startswith(f"{CELLS} of {CELLS} cells passed")
    printed = (tmp_path / "run.log").read_text(encoding="utf-8")
    assert printed.count("✓") == CELLS


def _address(file: Path) -> str:
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError):
        return ""


def test_a_scheduler_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(HEADER + CLEARING, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "nominee.cli", "skew", "run", str(matrix), "--executor", "dask"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--executor dask and --scheduler-address belong together" in refused.stderr
