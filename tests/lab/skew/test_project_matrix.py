"""`skew.yaml`, the matrix that `make skew` runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from nominee.lab.reports.markdown import as_text
from nominee.lab.skew.matrix.model import Matrix
from nominee.lab.skew.matrix.planning import MatrixPlan, plan
from nominee.lab.skew.matrix.reading import read_matrix

FILE = Path(__file__).resolve().parents[3] / "skew.yaml"


@cache
def _matrix() -> Matrix:
    return read_matrix(FILE)


@cache
def _selection() -> MatrixPlan:
    return plan(_matrix(), full=False)


@pytest.mark.slow
def test_every_cell_of_the_project_s_matrix_is_a_scenario() -> None:
    matrix = _matrix()
    found = plan(matrix, full=True)
    assert len(found.cells) == found.possible
    assert {row.kep for row in matrix.rows} == {0, 5278, 5836}


@pytest.mark.slow
def test_the_selection_shows_every_case() -> None:
    matrix = _matrix()
    found = _selection()
    shown = {(planned.cell.row.name, seen.case) for planned in found.cells for seen in planned.seen}
    cases = {(row.name, case.name) for row in matrix.rows for case in (*row.cases, *row.probe.cases)}
    paths = {row.name for row in matrix.rows if row.paths}
    assert {case for case in cases - shown if case[0] not in paths} == set()


@pytest.mark.parametrize("kep", [5278, 5836])
def test_the_page_of_a_kep_has_its_rows_and_answers(kep: int) -> None:
    """`nominee skew report DIR --kep N` writes it from the report of a run."""
    matrix = _matrix()
    text = (FILE.parent / f"docs/kep-{kep}.md").read_text(encoding="utf-8")
    for row in matrix.rows:
        assert (f"### {row.title}\n" in text) == (row.kep == kep), row.title
        for case in (*row.cases, *row.probe.cases) if row.kep == kep else ():
            assert f"| {as_text(case.see)} |" in text, case.see
    for answer in matrix.answers:
        assert (f"| {as_text(answer.answer)} |" in text) == (answer.kep == kep), answer.answer
        if answer.kep == kep:
            assert as_text(answer.note or answer.untested) in text, answer.answer
    cells = sum(planned.cell.row.kep == kep for planned in _selection().cells)
    assert f": {cells} of {cells} cells passed." in text
    assert "✗ failed" in text  # the legend
    assert "| ✗" not in text.replace("| ✗ contradicted", "")
    assert "| !" not in text
