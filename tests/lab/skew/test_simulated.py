"""Which cells a simulation plays, and what the reports say of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from nominee.commands.measuring.skew import skew
from nominee.lab.skew import run as running
from nominee.lab.skew.cells.store import Store
from nominee.lab.skew.matrix.model import Simulate
from nominee.lab.skew.matrix.planning import MatrixPlan, plan
from nominee.lab.skew.pages.kep_page import kep_page
from tests.lab.skew.matrices import CLEARING, HEADER, matrix
from tests.lab.skew.test_run import Counter, FakeExecutor

pytestmark = (
    pytest.mark.processes
)  # A cell names the commit of the clone, which git prints; one test starts a cell.

_KEPT = "clearing apiserver=1.33 scheduler=1.34 apiserver gates=default"
_CLEARED = "clearing apiserver=1.35 scheduler=1.34 apiserver gates=default"
_ROW = "  - name: clearing\n"
_REPEATED = CLEARING.replace(_ROW, f"{_ROW}    simulate: repeated\n")


def _plan(folder: Path, text: str, *, only: str = "", simulate: Simulate | None = None) -> MatrixPlan:
    return plan(matrix(folder, text), full=True, only=only, simulate=simulate)


def _on_processes(found: MatrixPlan) -> list[str]:
    return [planned.cell.name for planned in found.cells if not planned.simulated]


def test_real_processes_play_the_first_cell_with_each_case(tmp_path: Path) -> None:
    assert _on_processes(_plan(tmp_path, _REPEATED)) == [_KEPT, _CLEARED]
    without_cases = _REPEATED[: _REPEATED.index("    cases:")]
    assert _on_processes(_plan(tmp_path, without_cases)) == [_KEPT]


def test_a_selection_of_cells_does_not_change_which_are_simulated(tmp_path: Path) -> None:
    found = _plan(tmp_path, _REPEATED, only="apiserver=1.36")
    assert len(found.cells) == 4
    assert _on_processes(found) == []


def test_the_matrix_the_row_and_the_command_say_what_is_simulated(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text(
        (HEADER + CLEARING + CLEARING.replace(_ROW, "  - name: real\n    simulate: none\n")).replace(
            "  rows:", "  simulate: all\n  rows:"
        )
    )
    words = ["run", str(tmp_path / "matrix.yaml"), "--full", "--dry-run"]
    counts = {
        option: CliRunner().invoke(skew, [*words, *option]).output.count("  (simulated)")
        for option in ((), ("--real",), ("--simulate",))
    }
    assert counts == {(): 10, ("--real",): 0, ("--simulate",): 20}
    found = CliRunner().invoke(skew, [*words, "--real", "--simulate"])
    assert (found.exit_code, "--real or --simulate, not both" in found.output) == (2, True)
    assert len(_on_processes(_plan(tmp_path, CLEARING))) == 10


@pytest.mark.parametrize(
    "more", ["components: {etcd: {replicas: 3}}", "components: {scheduler: {command: [kube-scheduler]}}"]
)
def test_what_cannot_be_simulated_runs_on_real_processes(tmp_path: Path, more: str) -> None:
    text = CLEARING.replace(', scheduler: ["1.34", "1.35"]', "").replace("nodes: 1}", f"nodes: 1, {more}}}")
    found = _plan(tmp_path, text, simulate=Simulate.ALL)
    assert found.cells
    assert len(_on_processes(found)) == len(found.cells)


def test_a_cell_that_is_to_be_played_otherwise_runs_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "report")
    store.open(resume=False)
    executor = FakeExecutor({})
    for how in (Simulate.ALL, Simulate.ALL, Simulate.REPEATED):
        running.run(_plan(tmp_path, CLEARING, simulate=how), store, executor, Counter())
    assert len(executor.jobs) == 10 + 2


def test_the_reports_say_how_each_cell_was_played(tmp_path: Path) -> None:
    store = Store(tmp_path / "report")
    store.open(resume=False)
    found = _plan(tmp_path, _REPEATED)
    running.run(found, store, FakeExecutor({}), Counter())
    running.write(running.collect(found, store, 1.0), store)
    suite = ElementTree.parse(store.directory / "junit.xml").getroot()
    played = {
        case.get("name"): [each.get("value") for each in case.iterfind("properties/property[@name='played']")]
        for case in suite
    }
    real = {_KEPT, _CLEARED}
    assert played == {
        planned.cell.name: ["processes" if planned.cell.name in real else "simulation"]
        for planned in found.cells
    }
    page = (store.directory / "index.html").read_text(encoding="utf-8")
    buttons = re.findall(r'<button class="([^"]*)"[^>]* title="([^"]*)"', page)
    assert sum(title.endswith(", simulated") for _, title in buttons) == 8
    assert all(title.endswith(", simulated") == ("simulated" in style) for style, title in buttons)
    document = json.loads((store.directory / "skew.json").read_text(encoding="utf-8"))
    assert "10 of 10 cells passed, 8 in simulations" in document["summary"]
    text = kep_page(document, 5278)
    assert "Real processes played 2 cells, [simulations](simulation.md) 8." in text
    values = [name.removeprefix("clearing ") for name in (_KEPT, _CLEARED)]
    assert (
        f"Real processes played `{values[0]}`, `{values[1]}`; simulations played the other 8 cells." in text
    )


def test_a_simulated_cell_has_the_files_of_a_cell(tmp_path: Path) -> None:
    file, report = tmp_path / "matrix.yaml", tmp_path / "report"
    file.write_text(HEADER + CLEARING, encoding="utf-8")
    words = ["run", str(file), "--full", "--only", _CLEARED, "--simulate", "--report", str(report)]
    found = CliRunner().invoke(skew, words)
    assert found.exit_code == 0, found.output
    (cell,) = json.loads((report / "skew.json").read_text(encoding="utf-8"))["cells"]
    assert [each["case"] for each in cell["seen"]] == ["cleared"]
    folder = report / cell["directory"]
    assert cell["reproduce"] == f"nominee scenario run --simulate {folder}/scenario.yaml"
    assert {"scenario.yaml", "steps.txt", "result.json", "logs", "history.gz"} == {
        each.name for each in folder.iterdir()
    }
    assert "kubelet-0]" in (folder / "logs/simulation.log").read_text(encoding="utf-8")
    assert "a pod" in (folder / "steps.txt").read_text(encoding="utf-8")
    assert "Pod default/p created" in (report / "index.html").read_text(encoding="utf-8")


def test_a_row_has_the_values_that_its_cells_measured(tmp_path: Path) -> None:
    row = """\
  - name: pods
    cluster: {without: [autoscaler, cloud], nodes: 1}
    versions: {scheduler: ["1.35", "1.36"]}
    simulate: all
    variants: [{POD: a}, {POD: b}]
    steps:
    - apply:
        {apiVersion: v1, kind: Pod, metadata: {name: "${POD}"}, spec: {containers: [{name: c, image: app}]}}
    - wait: {object: {kind: Pod, name: "${POD}", jsonPath: {.status.phase: Running}}}
    measure:
      pods: {count: {kind: Pod}}
      phases: {values: {kind: Pod, name: "${POD}", jsonPath: .status.phase}}
"""
    file = tmp_path / "skew.yaml"
    file.write_text(HEADER + row, encoding="utf-8")
    out = tmp_path / "out"
    answer = CliRunner().invoke(skew, ["run", str(file), "--report", str(out)])
    assert answer.exit_code == 0, answer.output
    cells = json.loads((out / "skew.json").read_text(encoding="utf-8"))["cells"]
    assert [cell["measurements"][0]["values"] for cell in cells] == [{"pods": 2}] * 2
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "| cell | pods | phases |" in text
    assert "| 1.35, b |  | ['Pending', 'Running'] |" in text
