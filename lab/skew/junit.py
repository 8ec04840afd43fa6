"""The report as JUnit XML."""

from __future__ import annotations

from dataclasses import replace

from nominee.lab.scenario.play import report as scenario_report
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.lab.skew.report import Report, reproduce


def as_junit(report: Report) -> str:
    """Return a test suite with one test case for each cell; one that has not run is skipped."""
    matrix = report.plan.matrix
    results = [
        replace(
            cell.result,
            scenario=cell.planned.cell.name,
            section=f"{matrix.name}.{cell.planned.cell.row.name}",
            file=matrix.file,
            directory=f"cells/{cell.planned.id}",
            reproduce=reproduce(cell.planned),
        )
        for cell in report.cells
    ]
    results += [
        ScenarioResult(
            scenario=planned.cell.name,
            section=f"{matrix.name}.{planned.cell.row.name}",
            file=matrix.file,
            outcome=Outcome.SKIPPED,
            reason="not run",
        )
        for planned in report.unfinished
    ]
    played = {
        cell.planned.cell.name: "simulation" if cell.planned.simulated else "processes"
        for cell in report.cells
    }
    return scenario_report.as_junit(results, suite=f"nominee skew {matrix.name}", played=played)
