"""Exit statuses and messages of `nominee skew run` and `nominee skew report`."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Generator, Iterable
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.measuring import skew as command
from nominee.lab.jobs.job import ExecutorError, Job, Report
from nominee.lab.scenario.result import Outcome
from tests.lab.skew.matrices import CLEARING, HEADER, planned
from tests.lab.skew.test_run import FakeExecutor

pytestmark = pytest.mark.processes  # A cell names the commit of the clone, which git prints.


class FailingExecutor(FakeExecutor):
    """Ends `limit` jobs, and then raises an error."""

    def __init__(self, limit: int, error: Exception) -> None:
        super().__init__({})
        self._ended_max, self._error = limit, error

    def run(self, jobs: Iterable[Job]) -> Generator[Report, None, None]:
        yield from super().run(islice(jobs, self._ended_max))
        raise self._error


def _run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, executor: FakeExecutor, *words: str
) -> tuple[int, str]:
    monkeypatch.setattr(command, "_executor", lambda *_: executor)
    file = folder / "matrix.yaml"
    file.write_text(HEADER + CLEARING, encoding="utf-8")
    options = ["run", str(file), "--full", "--report", str(folder / "report"), *words]
    found = CliRunner().invoke(command.skew, options)
    return found.exit_code, found.output


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/r/steps.txt"), "No space left on device"),
        (ExecutorError("the connection to Dask's scheduler at tcp://x was lost"), "at tcp://x was lost"),
    ],
)
def test_an_error_of_the_executor_keeps_what_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    status, printed = _run(tmp_path, monkeypatch, FailingExecutor(3, error))
    assert status == 2
    assert f"{message}" in printed
    assert printed.endswith("; --resume runs the other cells\n")
    document = json.loads((tmp_path / "report/skew.json").read_text(encoding="utf-8"))
    assert (len(document["cells"]), len(document["unfinished"])) == (3, 7)
    assert _run(tmp_path, monkeypatch, FakeExecutor({}), "--resume")[0] == 0


def test_a_run_that_cannot_begin_leaves_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, printed = _run(
        tmp_path, monkeypatch, FailingExecutor(0, ExecutorError("no Dask scheduler at tcp://x"))
    )
    assert (status, printed) == (2, "no Dask scheduler at tcp://x\n")
    assert _run(tmp_path, monkeypatch, FakeExecutor({}))[0] == 0


def test_a_failed_cell_has_commands_for_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failed = planned(tmp_path, CLEARING, full=True).cells[0]
    status, printed = _run(Path(), monkeypatch, FakeExecutor({failed.id: Outcome.FAILED}))
    assert status == 1
    lines = printed.splitlines()
    at = lines.index(f"  again: nominee scenario run report/cells/{failed.id}/scenario.yaml")
    assert lines[at - 1].startswith(f"{failed.cell.name}: ")
    assert lines[at + 1] == f"  history: nominee history report/cells/{failed.id}/history.gz"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "--resume, if it was killed"),
        ("{", "is no report of `nominee skew run`: Expecting property name"),
        ("[]", "is no report of this version of `nominee skew run`"),
        ("{}", "is no report of this version of `nominee skew run`"),
    ],
)
def test_a_directory_without_a_report(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "skew.json").write_text(text, encoding="utf-8")
    for words in ([], ["--kep", "5278"]):
        found = CliRunner().invoke(command.skew, ["report", str(tmp_path), *words])
        assert found.exit_code == 1, found.output
        assert message in found.output


def test_more_cells_than_the_cores_can_carry_are_warned_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    command._executor("", 4)
    assert capsys.readouterr().err == ""
    command._executor("", 5)
    assert "--jobs 5 on 2 cores: clusters may not start in time" in capsys.readouterr().err
