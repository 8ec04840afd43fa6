"""Jobs as processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nominee.lab.jobs.dask import run_job
from nominee.lab.jobs.job import Ended, Job, Line
from nominee.lab.jobs.local import LocalExecutor
from nominee.lab.jobs.process import JobError, JobProcess
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.processes

_FUNCTIONS = "tests.lab.jobs.jobs_of_tests"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes of jobs import the tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[3]))


def test_results_arrive_in_order_and_the_end_last() -> None:
    names = {"PYTHONPATH": "", "TMPDIR": ""}
    job = Job(id="a", function=f"{_FUNCTIONS}:environment", arguments=(names,), own_temporary_files=True)
    *lines, ended = [each for each in LocalExecutor().run([job]) if each is not None]
    assert isinstance(ended, Ended)
    values = [each.value for each in lines if isinstance(each, Line)]
    assert [list(value) for value in values] == [["PYTHONPATH"], ["TMPDIR"]]
    assert values[1]["TMPDIR"] == ended.ran_in
    assert (ended.problem, ended.directory.exists()) == ("", False)


def test_the_next_job_is_taken_when_there_is_room_for_it() -> None:
    taken: list[int] = []

    def jobs() -> Iterator[Job]:
        for number in range(4):
            taken.append(number)
            yield Job(id=str(number), function=f"{_FUNCTIONS}:environment", arguments=({},))

    most = 0
    ended = 0
    for each in LocalExecutor(2).run(jobs()):
        most = max(most, len(taken) - ended)
        ended += isinstance(each, Ended)
    assert (most, ended) == (2, 4)


def test_a_worker_sends_the_lines_the_chosen_files_and_the_last_words() -> None:
    job = Job(id="a", function=f"{_FUNCTIONS}:fail", arguments=(3,), noun="trial", files=("kept*",))
    packed = run_job(job)
    assert packed.lines == [{"directory": packed.ended.ran_in}]
    assert packed.ended.problem == "the process of the trial ended with exit code 3: the reason"
    assert b"kept.txt" in packed.files
    assert b"other.txt" not in packed.files


def test_a_process_talks_until_its_input_ends(tmp_path: Path) -> None:
    job = Job(id="a", function=f"{_FUNCTIONS}:double", arguments=(2,), noun="worker")
    process = JobProcess(job, tmp_path, talks=True)
    try:
        assert process.receive(PATIENCE_SECONDS) == "ready"
        assert [process.ask(text, PATIENCE_SECONDS) for text in ("1", "21")] == [2, 42]
        with pytest.raises(JobError, match=r"no answer within 0\.1 s"):
            process.receive(0.1)
        process.leave(PATIENCE_SECONDS)
        with pytest.raises(JobError, match="the worker has ended with 0"):
            process.receive(PATIENCE_SECONDS)
    finally:
        process.close()
