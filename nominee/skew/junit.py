"""The report as JUnit XML."""

from __future__ import annotations

from dataclasses import replace

from nominee.scenario import report as scenario_report
from nominee.skew.report import Report


def as_junit(report: Report) -> str:
    """Return a test suite with one test case for each cell."""
    results = [
        replace(
            cell.result,
            scenario=cell.planned.cell.name,
            section=f"{report.plan.matrix.name}.{cell.planned.cell.row.name}",
            directory=f"cells/{cell.planned.id}",
            reproduce=f"nominee scenario run cells/{cell.planned.id}/scenario.yaml",
        )
        for cell in report.cells
    ]
    return scenario_report.as_junit(results)
