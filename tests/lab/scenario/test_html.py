"""The page of `nominee scenario run --html`: the steps of a result, on its time line too."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.commands.pages import write_results
from nominee.lab.history.process_logs import lines_of
from nominee.lab.scenario.play.page import marks, page
from nominee.lab.scenario.result import Outcome, ScenarioResult, StepResult, Violation
from tests.lab.invariants.histories import History, pod
from tests.lab.timeline.test_report import HOSTILE, data_of, unpacked, write_history

LOG = """\
I1114 22:13:20.500000 scenario] Step text="apply pod/a"
I1114 22:13:30.000000 scenario] Step text="apply pod/a"
"""
BEGAN = 1700000000.0


def _step(number: int, name: str, at: float, outcome: Outcome = Outcome.PASSED) -> StepResult:
    return StepResult(
        number=number, verb="v", name=name, line=1, started_seconds=at, seconds=1.0, outcome=outcome,
        observation=HOSTILE,
    )  # fmt: skip


def _result(directory: str = "", *, failed: bool = False) -> ScenarioResult:
    last = _step(2, "pod a is bound", 2.0, Outcome.FAILED if failed else Outcome.PASSED)
    broken = Violation(invariant="i", message=HOSTILE, revisions=(2,), objects=("Pod default/b",))
    return ScenarioResult(
        scenario="s", outcome=last.outcome, seconds=5.0, steps=(_step(1, "apply pod/a", 0.5), last),
        violations=(broken,) if failed else (), objects=broken.objects if failed else (),
        directory=directory, reproduce="nominee scenario run f",
    )  # fmt: skip


def test_steps_that_the_log_does_not_have_are_marks_at_their_time() -> None:
    history = History().put(pod("a"), pod("b")).revisions
    log = list(lines_of(LOG.splitlines(), 2023))
    first, second, violation = marks([_result(), _result(failed=True)], history, log)
    assert (first.time, first.kind, first.text) == (BEGAN + 2.0, "step", "✓ pod a is bound")
    # Of the next scenario on the same cluster: a step that fails is marked at its end.
    assert (second.time, second.kind) == (BEGAN + 9.5 + 3.0, "violation")
    assert second.text.startswith("✗ pod a is bound: ")
    assert (violation.time, violation.subject) == (history[1].time, "Pod default/b")


def test_the_page_has_steps_logs_commands_and_the_time_line(tmp_path: Path) -> None:
    directory = write_history(tmp_path / "s", LOG)
    text = page([_result(directory, failed=True)], HOSTILE, keep=False)
    assert "<img" not in text
    data = data_of(text)
    (item,) = data["items"].values()
    blocks = {title: lines for title, lines, _ in item["blocks"]}
    assert blocks["Steps"] == [
        f"   0.50s ✓ 1. apply pod/a: {HOSTILE}", f"   2.00s ✗ 2. pod a is bound: {HOSTILE}"
    ]  # fmt: skip
    assert blocks["Log of scheduler"] == LOG.splitlines()
    assert item["commands"] == {
        "Play it again": "nominee scenario run f",
        "Look at its history": f"nominee history {directory}/history.gz Pod/default/b",
    }
    document = unpacked(data["timelines"][directory])
    assert [mark["kind"] for mark in document["marks"]] == ["step", "violation", "violation", "step"]
    assert document["follow"] == ["Pod default/b"]


@pytest.mark.parametrize("keep", [True, False])
def test_the_files_of_a_scenario_that_held_go_when_the_page_is_written(tmp_path: Path, keep: bool) -> None:
    held, failed = write_history(tmp_path / "held"), write_history(tmp_path / "failed")
    file = tmp_path / "page.html"
    found = write_results(file, [_result(held), _result(failed, failed=True)], "t", keep)
    assert [each.directory for each in found] == [held if keep else "", failed]
    assert (Path(held).exists(), Path(failed).exists()) == (keep, True)
    one, _ = data_of(file.read_text())["items"].values()
    assert bool(one["commands"]["Look at its history"]) == keep
    assert one["timeline"] == held
