"""Jobs on Dask workers: one worker dies during the run, and no job is lost or counted twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nominee.commands.measuring.skew import skew
from nominee.lab.jobs import dask
from nominee.lab.jobs.dask import DaskExecutor, run_job
from nominee.lab.jobs.job import ExecutorError, Job
from nominee.lab.skew.cells import cell_run
from tests.lab.scenario.test_command import _SMALL as SMALL
from tests.lab.skew.fake_cell import FOLDER, started, started_by
from tests.lab.skew.matrices import CLEARING, HEADER, planned
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

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


class Cluster:
    """A Dask cluster of processes; `environment` makes their cells fake ones."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack
        self.matrix, self.report = folder / "matrix.yaml", folder / "report"
        self.matrix.write_text(HEADER + CLEARING, encoding="utf-8")
        self._environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'build/pb'}", FOLDER: str(folder)}
        self.temporary = folder / "t"
        self.temporary.mkdir()
        self._environment["TMPDIR"] = str(self.temporary)
        file = folder / "scheduler.json"
        options = ("--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
        self.scheduler = self.start("scheduler", "-m", "distributed.cli.dask_scheduler", *options)
        self.address = eventually_sync(lambda: _address(file))

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a Python process, which ends with the test."""
        return self._stack.enter_context(_process(self.folder / f"{name}.log", self._environment, *words))

    def start_worker(self, number: int) -> subprocess.Popen[bytes]:
        """Start a worker that runs one cell at a time."""
        one_thread = (self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        local = ("--local-directory", str(self.folder / f"w{number}"), "--host", "127.0.0.1")
        return self.start(f"worker-{number}", "-m", "distributed.cli.dask_worker", *one_thread, *local)

    def start_run(self) -> subprocess.Popen[bytes]:
        """Start `nominee skew run` on the cluster."""
        command = ("skew", "run", str(self.matrix), "--full", "--report", str(self.report))
        executor = ("--executor", f"dask={self.address}")
        return self.start("run", "-m", "tests.lab.skew.fake_command", *command, *executor)

    def log(self, name: str) -> str:
        """Return what a process has printed."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    @property
    def printed(self) -> str:
        """Return what the run has printed."""
        return self.log("run")


@pytest.mark.slow
def test_a_worker_that_dies_loses_no_cell(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        workers = [cluster.start_worker(number) for number in range(WORKERS)]
        run = cluster.start_run()
        first = eventually_sync(lambda: started_by(tmp_path), lambda found: len(found) == WORKERS)
        name, _, worker = first[0]
        dying = next(process for process in workers if process.pid == worker)
        dying.kill()
        dying.wait()
        (tmp_path / "released").touch()
        assert run.wait(timeout=PATIENCE_SECONDS) == 0, cluster.printed
    counts = Counter(each for each, _, _ in started_by(tmp_path))
    assert len(counts) == CELLS
    assert {each: count for each, count in counts.items() if count > 1} == {name: 2}
    # What the dead worker left was removed by the others.
    assert list(cluster.temporary.glob("nominee-job-*")) == []
    document = json.loads((cluster.report / "skew.json").read_text(encoding="utf-8"))
    cells = [cell["id"] for cell in document["cells"]]
    assert sorted(cells) == sorted(each.id for each in planned(tmp_path, CLEARING, full=True).cells)
    assert document["summary"].startswith(f"{CELLS} of {CELLS} cells passed")
    assert cluster.printed.count("✓") == CELLS


@pytest.mark.slow
def test_a_run_ends_with_the_scheduler_and_keeps_what_has_ended(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        cluster.start_worker(0)
        run = cluster.start_run()
        ((name, _),) = eventually_sync(lambda: started(tmp_path), lambda found: len(found) == 1)
        (tmp_path / f"released-{name}").touch()
        eventually_sync(lambda: "✓" in cluster.printed)
        cluster.scheduler.kill()
        assert run.wait(timeout=PATIENCE_SECONDS) == 2, cluster.printed
    assert f"the connection to Dask's scheduler at {cluster.address} was lost" in cluster.printed
    document = json.loads((cluster.report / "skew.json").read_text(encoding="utf-8"))
    assert [cell["id"] for cell in document["cells"]] == [name]


@pytest.mark.slow
def test_a_cluster_without_workers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "WORKERS_SECONDS_MAX", 1.5)
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        running = DaskExecutor(cluster.address).run(_jobs(tmp_path))
        with pytest.raises(
            ExecutorError, match=f"had no worker for 1.5 s; start some: dask worker {cluster.address}"
        ):
            list(running)


def test_an_address_without_a_scheduler_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "_CONNECT_SECONDS_MAX", 0.5)
    for address in ("tcp://127.0.0.1:1", "127.0.0.1:x", "nonsense://a"):
        running = DaskExecutor(address).run(_jobs(tmp_path))
        with pytest.raises(ExecutorError, match=f"no Dask scheduler at {address}"):
            next(running)


def test_a_worker_of_another_version_runs_no_cell(tmp_path: Path) -> None:
    (job, *_) = _jobs(tmp_path)
    packed = run_job(replace(job, version="0.1.0"))
    assert packed.lines == []
    assert packed.ended.problem == f"the worker has Nominee {version('nominee')}, and the run 0.1.0"


@pytest.mark.slow
def test_seeds_and_cases_leave_the_machine(tmp_path: Path) -> None:
    """The worker that dies has begun simulations; each seed and each case is counted once."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        dying, _ = cluster.start_worker(0), cluster.start_worker(1)
        executor = ("--simulate", "--executor", f"dask={cluster.address}", "-o", "json")
        words = ("scenario", "run", str(file))
        run = cluster.start("seeds", "-m", "nominee.cli", *words, "--seeds", "1-52", *executor)
        eventually_sync(lambda: len(list(cluster.temporary.glob("nominee-job-*/*.pickle"))) == 2)
        dying.kill()
        assert run.wait(timeout=PATIENCE_SECONDS) == 0, cluster.log("seeds")
        (result,) = _json(cluster.log("seeds"))["results"]
        assert result["reason"] == "52 seeds"
        cases = ("--only", "scheduler:scheduler.bind.*=crash", "--seed", "1", "--budget", "5m")
        words = ("chaos", "explore", str(file))
        run = cluster.start("cases", "-m", "nominee.cli", *words, *cases, *executor)
        assert run.wait(timeout=PATIENCE_SECONDS) == 0, cluster.log("cases")
    (report,) = _json(cluster.log("cases"))["explorations"]
    counts = Counter(each["case"] for each in report["results"])
    assert counts == dict.fromkeys(counts, 1)
    assert len(counts) == report["singleCases"] == report["runs"] - 1 > 1


@pytest.mark.slow
def test_a_cluster_of_real_processes_on_a_worker(tmp_path: Path) -> None:
    """A case that breaks sends its logs and history; a study sends its results."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL.replace("Running}}}", "Succeeded}}}, seconds: 1"), encoding="utf-8")
    kept = tmp_path / "kept"
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        cluster.start_worker(0)
        executor = ("--executor", f"dask={cluster.address}", "-o", "json")
        words = ("chaos", "explore", str(file), "--dir", str(kept), *executor)
        run = cluster.start("cases", "-m", "nominee.cli", *words)
        assert run.wait(timeout=PATIENCE_SECONDS) == 1, cluster.log("cases")
        (report,) = _json(cluster.log("cases"))["explorations"]
        (broken,) = report["broken"]
        assert broken["directory"] == str(kept / "001-undisturbed")
        assert {"history.gz", "logs"} <= {each.name for each in (kept / "001-undisturbed").iterdir()}
        options = ("--quick", "--seeds", "1", "--scenario", "four-pods", "--option", "none", *executor)
        run = cluster.start("study", "-m", "nominee.cli", "study", "resize-preemption", *options)
        assert run.wait(timeout=PATIENCE_SECONDS) == 0, cluster.log("study")
    (found,) = _json(cluster.log("study"))["runs"]
    assert {group["fit"] for group in found["groups"]} == {"scheduler", "kubelet"}


def _json(printed: str) -> dict[str, Any]:
    """Return the document that a command has printed after its progress."""
    document: dict[str, Any] = json.loads(printed[f"\n{printed}".index("\n{\n") :])
    return document


def _jobs(folder: Path) -> list[Job]:
    cells = planned(folder, CLEARING, full=True).cells[:2]
    return [cell_run.job(cell) for cell in cells]


def _address(file: Path) -> str:
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError):
        return ""


def test_an_executor_without_an_address_is_refused(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(HEADER + CLEARING, encoding="utf-8")
    for text in ("dask", "dask=", "slurm"):
        found = CliRunner().invoke(skew, ["run", str(matrix), "--executor", text])
        assert found.exit_code == 2
        assert f"'{text}' is neither local nor dask=ADDRESS" in found.output
