"""The report of a finding in a simulation: what it says, and that it is the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nominee.commands.chaos.explore import chaos
from nominee.lab.history.history_file import HistoryReader
from tests.mutations.catalogue import BY_NAME
from tests.mutations.patch import applied

FILE = Path(__file__).parents[2] / "mutations" / "scenarios" / "pods.yaml"
CASE = "scheduler:scheduler.assume.after=error"
PAIR = f"kubelet-0:clock=ahead+{CASE}"


@pytest.fixture(autouse=True)
def mutated() -> Iterator[None]:
    """Let the scheduler keep a pod assumed whose binding failed."""
    undo = applied(BY_NAME["assumed-pod-not-forgotten"].edits)
    yield
    undo()


def explore(directory: Path, *options: str) -> Result:
    arguments = ["explore", str(FILE), "--simulate", "--seed", "1", "--dir", str(directory), *options]
    return CliRunner().invoke(chaos, arguments)


@pytest.mark.slow  # 10 to 20 s of processor time
def test_a_finding_says_what_was_disturbed_and_where_the_history_differs(tmp_path: Path) -> None:
    ran = explore(tmp_path / "one", "--case", PAIR)
    lines = ran.stdout.splitlines()
    assert ran.exit_code == 1
    # The smallest case is first, also if only the larger one was asked for.
    start = lines.index(f"broken: {CASE}")
    assert lines[start + 1] == (
        "  disturbance: scheduler gets the error 503 at hit 1 of scheduler.assume.after"
    )
    assert "  first difference: " in lines[start + 3]
    assert (
        "Pod default/a: PodScheduled >False/SchedulerError; undisturbed: +spec.nodeName" in lines[start + 3]
    )
    assert lines[start + 4] == "  Pod default/a:"
    assert lines[start + 5].endswith("created, phase >Pending")
    assert f"--simulate --seed 1 --case {CASE}" in ran.stdout
    (kept,) = (tmp_path / "one").glob("003-scheduler-scheduler.assume.after=error")
    assert (kept / "simulation.log").exists()
    assert any(revision.subject == "Pod default/a" for revision in HistoryReader(kept / "history.gz"))

    again = explore(tmp_path / "two", "--case", PAIR)
    same = [[line for line in each.stdout.splitlines() if line[:1] != "#"] for each in (ran, again)]
    assert same[0] == same[1]
    assert f"#  history: nominee history {kept}/history.gz Pod/default/a" in lines
    assert len(lines) - len(same[0]) == 5  # two directories with their commands, and the time that it took


def test_no_case_is_a_status_of_its_own(tmp_path: Path) -> None:
    ran = explore(tmp_path, "--only", "nothing")
    assert ran.exit_code == 2
    assert "no case took place" in ran.stdout
    ran = explore(tmp_path, "--case", "scheduler:scheduler.bind.after=error@99")
    assert ran.exit_code == 2
    assert "unreached: scheduler:scheduler.bind.after=error@99" in ran.stdout
