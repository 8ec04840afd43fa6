"""Cells as processes of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.measuring.skew import skew
from nominee.lab.jobs.directory import JobDirectory
from nominee.lab.jobs.job import Ended, Job
from nominee.lab.jobs.local import LocalExecutor
from nominee.lab.scenario.result import Outcome
from nominee.lab.skew.cells import cell_run
from nominee.lab.skew.cells.store import Store
from nominee.localcluster.supervisor.directory import is_alive
from tests.lab.skew.fake_cell import FOLDER, started
from tests.lab.skew.matrices import CLEARING, HEADER, planned
from tests.support.eventually import eventually_sync


def _jobs(folder: Path) -> list[Job]:
    cells = planned(folder, CLEARING, full=True).cells[:4]
    return [replace(cell_run.job(cell), seconds_max=60.0) for cell in cells]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of fake cells."""
    monkeypatch.setattr(cell_run, "FUNCTION", "tests.lab.skew.fake_cell:play")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[3]))
    return tmp_path


@pytest.mark.slow
@pytest.mark.processes
def test_at_most_so_many_cells_run_at_a_time(folder: Path) -> None:
    jobs = _jobs(folder)
    running = LocalExecutor(2).run(jobs)
    assert next(running) is None  # a second has passed
    eventually_sync(lambda: started(folder), lambda found: len(found) == 2)
    (folder / "released").touch()
    ended = [each.job.id for each in running if isinstance(each, Ended)]
    assert sorted(ended) == sorted(job.id for job in jobs)
    assert sorted(name for name, _ in started(folder)) == sorted(ended)


@pytest.mark.processes
def test_an_interrupted_run_kills_its_cells(folder: Path) -> None:
    running = LocalExecutor(2).run(_jobs(folder))
    assert next(running) is None
    found = eventually_sync(lambda: started(folder), lambda found: len(found) == 2)
    running.close()
    eventually_sync(lambda: [pid for _, pid in found if is_alive(pid)], lambda alive: not alive)


def test_the_directory_of_a_killed_process_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # it is read again
    program = (
        "from nominee.lab.jobs.directory import JobDirectory\n"
        "print(JobDirectory.make().path, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        first = JobDirectory.make()
        assert {*tmp_path.iterdir()} == {left, first.path}
        process.kill()
    second = JobDirectory.make()
    assert {*tmp_path.iterdir()} == {first.path, second.path}
    for each in (first, second):
        each.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processes
def test_a_cell_that_does_not_end_is_an_error(folder: Path) -> None:
    cell = planned(folder, CLEARING, full=True).cells[0]
    job = replace(cell_run.job(cell), seconds_max=0.5)
    store = Store(folder / "report")
    for each in LocalExecutor().run([job]):
        if isinstance(each, Ended):
            cell_run.keep(cell, [], each, store.folder(cell))
    found = store.result(cell)
    assert found is not None
    assert (found.result.outcome, found.result.reason) == (Outcome.ERROR, "the cell did not end within 0.5 s")


@pytest.mark.slow
@pytest.mark.processes
def test_a_cell_on_a_real_cluster(tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text(HEADER + CLEARING, encoding="utf-8")
    only = "apiserver=1.36 scheduler=1.35 apiserver gates=default"
    report = tmp_path / "report"
    found = CliRunner().invoke(skew, ["run", str(file), "--full", "--only", only, "--report", str(report)])
    assert found.exit_code == 0, found.output
    (cell,) = json.loads((report / "skew.json").read_text(encoding="utf-8"))["cells"]
    assert cell["seen"] == [
        {"stage": 0, "label": "start", "case": "cleared", "see": "the bound pod has no nominatedNodeName"}
    ]
    kept = {each.name for each in (report / cell["directory"]).iterdir()}
    assert {"scenario.yaml", "steps.txt", "result.json", "logs", "history.gz"} <= kept
    assert "Pod default/p created" in (report / "index.html").read_text(encoding="utf-8")
