"""The pages of `nominee chaos`: what broke, with its time line and the commands that repeat it."""

from __future__ import annotations

from pathlib import Path

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict
from nominee.lab.chaos.explorer import Report
from nominee.lab.chaos.generated.search import Searched
from nominee.lab.chaos.reporting import pages
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.result import Violation
from tests.lab.timeline.test_report import HOSTILE, data_of, write_history

CASE = Case.parse("scheduler:scheduler.bind.before=error")


def test_a_broken_case_has_its_time_line_and_comes_first(tmp_path: Path) -> None:
    directory = write_history(tmp_path / "001")
    violation = Violation(invariant="i", message=HOSTILE, objects=("Pod default/b",))
    held = CaseResult(case=Case(), verdict=Verdict.HELD)
    broken = CaseResult(
        case=CASE, verdict=Verdict.BROKEN, observation=HOSTILE, violations=(violation,), directory=directory,
        reproduce="nominee chaos explore f --case c",
    )  # fmt: skip
    report = Report(
        scenario=Scenario(name="s", file="f.yaml"), seed=1, results=[held, broken], broken=[broken]
    )
    text = pages.exploration_page(report)
    assert "<img" not in text
    data = data_of(text)
    first, second = data["items"].values()
    assert (first["name"], first["outcome"], second["outcome"]) == (str(CASE), "broken", "held")
    assert ["Violated invariants", [f"i: {HOSTILE}"], True] in first["blocks"]
    assert ["Log of scheduler", [HOSTILE], False] in first["blocks"]
    assert first["commands"]["Run it again"] == broken.reproduce
    assert first["commands"]["Look at its history"] == f"nominee history {directory}/history.gz Pod/default/b"
    assert list(data["timelines"]) == [first["timeline"]] == [directory]


def test_a_generated_finding_has_its_scenario(tmp_path: Path) -> None:
    file = tmp_path / "generated-7.yaml"
    file.write_text(f"kind: Scenario # {HOSTILE}\n")
    finding = Searched(
        seed=7, runs=3, rule="r", observation=HOSTILE, case="c", file=str(file), reproduce="nominee x"
    )
    text = pages.generation_page([Searched(seed=6, runs=9), finding])
    assert "12 runs: 1 with findings" in text
    assert "<img" not in text
    first, second = data_of(text)["items"].values()
    assert (first["name"], first["outcome"], second["outcome"]) == ("seed 7", "broken", "held")
    assert first["blocks"] == [[f"The smallest scenario, {file}", [f"kind: Scenario # {HOSTILE}"], True]]
    assert second["commands"] == {"Run it again": "nominee chaos generate --seed 6 --rounds 1"}


def test_a_random_run_has_its_problems_and_operations(tmp_path: Path) -> None:
    directory = write_history(tmp_path / "seed-1")
    run = {
        "seed": 1, "version": "1", "commit": "", "reproduce": "nominee chaos run --seed 1", "ran": True,
        "problems": [HOSTILE], "seconds": 2.0, "pods": 4, "operations": {"Kill": 2}, "refused": {"Kill": 1},
        "directory": directory, "history": "nominee history x",
    }  # fmt: skip
    text = pages.random_runs_page([run, {**run, "seed": 2, "problems": [], "directory": "", "history": ""}])
    assert "2 runs, 1 failed" in text
    assert "<img" not in text
    first, second = data_of(text)["items"].values()
    assert (first["outcome"], second["outcome"]) == ("failed", "held")
    assert first["blocks"][0] == ["Operations", ["2 Kill, 1 refused"], True]
    assert (first["timeline"], second["timeline"]) == (directory, "")
    assert [name for name, text in second["commands"].items() if text] == ["Run it again"]
