"""The search: findings become files with the command that replays them; the same seeds give the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.chaos.explore import chaos
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict
from nominee.lab.chaos.explorer import Report
from nominee.lab.chaos.generated.generating import Document
from nominee.lab.chaos.generated.search import Search, rule_of
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.result import Violation

CASE = Case.parse("scheduler:pods=stale@5")
BROKEN = CaseResult(
    case=CASE,
    verdict=Verdict.BROKEN,
    observation="the cluster does not come to rest: pod default/web-x1 waits in the state Unschedulable",
    reproduce="nominee chaos explore FILE",
)


class Table(Search):
    """Reports a finding for each scenario that has the ReplicaSet of the base load."""

    def _explore(self, document: Document, seed: int, case: Case | None = None) -> Report:
        report = Report(scenario=Scenario(name="s"), seed=seed, runs=2)
        if "'name': 'base'" in str(document):
            report.broken.append(replace(BROKEN, case=CASE if case is None else case))
        return report


def test_a_finding_is_written_and_the_same_one_is_not_shrunk_again(tmp_path: Path) -> None:
    first, second = Table(tmp_path, 8, 60, lambda _: None).run([3, 4], 1000.0)
    (scenario,) = read_file(Path(first.file))
    assert (scenario.name, scenario.title) == ("generated-3", BROKEN.observation)
    assert first.steps == len(scenario.steps) == 1
    assert first.case == "scheduler:pods=stale", "the step that is left"
    assert first.reproduce == BROKEN.reproduce
    assert first.runs > 2
    assert (second.rule, second.known_seed, second.runs, second.file) == (first.rule, 3, 2, "")


def test_no_seed_begins_after_the_budget(tmp_path: Path) -> None:
    assert list(Table(tmp_path, 8, 60, lambda _: None).run([3], 0.0)) == []


@pytest.mark.parametrize(
    ("result", "rule"),
    [
        (BROKEN, "pod * waits in the state Unschedulable"),
        (
            replace(BROKEN, violations=(Violation(invariant="one-node-per-pod", message="moved"),)),
            "one-node-per-pod",
        ),
    ],
)
def test_a_rule_names_no_objects(result: CaseResult, rule: str) -> None:
    assert rule_of(result) == rule


@pytest.mark.slow  # 10 to 20 s of processor time
@pytest.mark.processes
def test_a_seed_is_silent_and_gives_the_same_twice(tmp_path: Path) -> None:
    arguments = [
        "generate",
        "--seed",
        "1",
        "--rounds",
        "1",
        "--cases",
        "2",
        "--dir",
        str(tmp_path),
        "-o",
        "json",
    ]
    ran = [CliRunner().invoke(chaos, arguments) for _ in range(2)]
    assert [each.exit_code for each in ran] == [0, 0], ran[0].output
    assert ran[0].output == ran[1].output
    assert json.loads(ran[0].output)["runs"][0]["runs"] == 3
    assert not any(tmp_path.glob("*"))
