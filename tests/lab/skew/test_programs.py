"""Other programs as values of a component's version: a matrix of real schedulers is a file."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nominee.commands.measuring.skew import skew
from nominee.lab.scenario.format.documents import InvalidScenarioError
from nominee.lab.skew.pages.kep_page import kep_page
from nominee.lab.skew.pages.markdown import as_markdown
from tests.lab.scenario.test_replacing import STAND_IN
from tests.lab.skew.matrices import HEADER, planned
from tests.lab.skew.test_run import report_of

pytestmark = pytest.mark.processes  # A cell names the commit of the clone, which git prints; one plays cells.

_EXPECTATION = "NominatedNodeNameForExpectation"
_ROW = f"""\
  - name: expectation
    kep: 5278
    simulate: all
    cluster: {{nodes: 1, without: [autoscaler, cloud]}}
    versions: {{scheduler: ["1.34", kube-scheduler-1.35]}}
    gates: {{scheduler: [{{}}, {{{_EXPECTATION}: false}}]}}
    steps:
    - apply:
        apiVersion: v1
        kind: Pod
        metadata: {{name: p}}
        spec: {{containers: [{{name: c, image: app}}]}}
    - wait: {{queue: {{queue: none, pod: p}}}}
    cases:
    - name: "on"
      when: {{scheduler: {{gates: {{{_EXPECTATION}: true}}}}}}
      see: set
      steps: [&bound {{wait: {{object: {{kind: Pod, name: p, condition: PodScheduled=True}}}}}}]
    - {{name: "off", see: not set, steps: [*bound]}}
"""
_ON = "expectation scheduler=kube-scheduler-1.35 scheduler gates=default"


def text(*command: str) -> str:
    """Return a row in which the scheduler is ours at 1.34, or another program."""
    program = (
        "name: kube-scheduler-1.35, component: scheduler, version: '1.35',"
        f" gates: {{{_EXPECTATION}: true}}, command: {json.dumps(command)}"
    )
    return f"{_ROW}  programs:\n  - {{{program}}}\n"


def test_a_programs_version_and_gates_say_which_case_applies(tmp_path: Path) -> None:
    plan = planned(tmp_path, text("kube-scheduler", "--config={config}"), full=True)
    cases = {each.cell.name.partition(" ")[2]: [seen.case for seen in each.seen] for each in plan.cells}
    assert cases == {
        "scheduler=1.34 scheduler gates=default": ["off"],
        f"scheduler=1.34 scheduler gates={_EXPECTATION}=false": ["off"],
        "scheduler=kube-scheduler-1.35 scheduler gates=default": ["on"],
        f"scheduler=kube-scheduler-1.35 scheduler gates={_EXPECTATION}=false": ["off"],
    }
    real = {each.cell.name: each for each in plan.cells}[_ON]
    components = yaml.safe_load(real.text)["spec"]["cluster"]["components"]
    assert components["scheduler"] == {"featureGates": {_EXPECTATION: True}}


def test_a_cell_with_a_program_is_never_simulated(tmp_path: Path) -> None:
    plan = planned(tmp_path, text("kube-scheduler"), full=True)
    assert [each.simulated for each in plan.cells] == [not each.cell.programs for each in plan.cells]
    assert [bool(each.cell.programs) for each in plan.cells] == [False, False, True, True]


def test_a_result_of_another_program_is_not_used_again(tmp_path: Path) -> None:
    plans = [planned(tmp_path, text(name), full=True) for name in ("one", "other")]
    changed = [a.digest != b.digest for a, b in zip(*(plan.cells for plan in plans), strict=True)]
    assert changed == [False, False, True, True]


def test_the_pages_say_which_cells_had_another_program(tmp_path: Path) -> None:
    report, _ = report_of(tmp_path, text("bin/kube-scheduler", "--config={config}"))
    document = report.as_json()
    sentence = (
        "With `scheduler=kube-scheduler-1.35` the component is the program"
        " `bin/kube-scheduler '--config={config}'`."
    )
    assert as_markdown(document).count(sentence) == 1
    assert kep_page(document, 5278).count(sentence) == 2  # of the whole run, and of the row
    (cell,) = (each for each in document["cells"] if each["name"] == _ON)
    assert cell["reproduce"].startswith("nominee scenario run --replace 'scheduler=bin/kube-scheduler ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            ", kube-scheduler-1.35]",
            ", kube-scheduler-1.34]",
            "no program 'kube-scheduler-1.34'; known are kube-s",
        ),
        ("versions: {scheduler", "versions: {controllers", "is a program in the place of scheduler"),
        ("version: '1.35'", "version: '1.99'", "programs[0].version"),
        ("'1.35', gates: {Nom", "'1.35', gates: {Nim", "programs[0].gates"),
        ("command: [", "command: [], was: [", "programs[0]"),
        ("component: scheduler", "component: kubelet", "programs[0].component"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, message: str) -> None:
    whole = text("kube-scheduler")
    assert old in whole
    with pytest.raises(InvalidScenarioError) as caught:
        planned(tmp_path, whole.replace(old, new, 1), full=True)
    assert message in str(caught.value)


def play(tmp_path: Path, *command: str) -> dict[str, dict[str, object]]:
    """Run the cells of another program; return them by name."""
    (tmp_path / "matrix.yaml").write_text(HEADER + text(*command), encoding="utf-8")
    words = ["run", str(tmp_path / "matrix.yaml"), "--full", "--only", "kube-scheduler-1.35"]
    CliRunner().invoke(skew, [*words, "--report", str(tmp_path / "report")], catch_exceptions=False)
    document = json.loads((tmp_path / "report" / "skew.json").read_text(encoding="utf-8"))
    return {each["name"]: each for each in document["cells"]}


def test_a_program_that_is_not_installed_skips_its_cells(tmp_path: Path) -> None:
    cells = play(tmp_path, "no-such-program")
    assert {each["outcome"] for each in cells.values()} == {"skipped"}
    assert cells[_ON]["reason"] == "the program no-such-program is not installed"


@pytest.mark.slow
def test_another_scheduler_plays_cells(tmp_path: Path) -> None:
    command = [sys.executable, "-P", str(STAND_IN), "--config={config}"]
    cells = play(tmp_path, *command)
    assert len(cells) == 2
    assert {each["outcome"] for each in cells.values()} == {"passed"}, cells
    assert cells[_ON]["programs"] == {"scheduler": shlex.join(command)}
    assert not cells[_ON]["simulated"]
