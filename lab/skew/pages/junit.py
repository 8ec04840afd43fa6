"""The report as JUnit XML."""

from __future__ import annotations

from dataclasses import replace

from nominee.lab.reports.junit import JUnitCase, Mark, junit
from nominee.lab.scenario.play.report import junit_case
from nominee.lab.skew.matrix.planning import PlannedCell
from nominee.lab.skew.pages.report import CellResult, Report


def as_junit(report: Report) -> str:
    """Return a test suite with one test case for each cell; one that has not run is skipped."""
    matrix = report.plan.matrix

    def section(planned: PlannedCell) -> str:
        return f"{matrix.name}.{planned.cell.row.name}"

    def of_cell(cell: CellResult) -> JUnitCase:
        planned = cell.planned
        result = replace(
            cell.result,
            scenario=planned.cell.name,
            section=section(planned),
            file=matrix.file,
            directory=str(report.directory / "cells" / planned.id),
            reproduce=cell.reproduce(report.directory),
        )
        played = "simulation" if planned.simulated else "processes"
        return junit_case(result, played=" and ".join([played, *sorted(planned.cell.programs)]))

    cases = [of_cell(cell) for cell in report.cells]
    cases += [
        JUnitCase(
            name=planned.cell.name,
            classname=section(planned),
            mark=Mark.SKIPPED,
            message="not run",
            attributes={"file": matrix.file},
        )
        for planned in report.unfinished
    ]
    return junit(f"nominee skew {matrix.name}", cases)
