"""Run the cells of a plan with an executor, and write the reports."""

from __future__ import annotations

import json
from contextlib import closing
from importlib.metadata import version
from typing import Protocol

from nominee.lab.bench.machine import machine
from nominee.lab.jobs.job import Ended, Executor, Line
from nominee.lab.scenario.result import Outcome
from nominee.lab.skew.cells import cell_run, evidence
from nominee.lab.skew.cells.store import Store
from nominee.lab.skew.matrix.planning import MatrixPlan
from nominee.lab.skew.pages import junit, kep_page, markdown, page
from nominee.lab.skew.pages import report as reports
from nominee.lab.skew.pages.report import CellResult, Report, judge
from nominee.localcluster.supervisor.directory import write_atomically
from nominee.machinery.wire.values.scalars import Json


class Progress(Protocol):
    """A reader of the progress of a run."""

    def began(self, cells: int) -> None:
        """Report how many cells are to run."""
        ...

    def ended(self, cell: CellResult) -> None:
        """Report the end of a cell."""
        ...

    def tick(self) -> None:
        """Show the time again."""
        ...


def run(plan: MatrixPlan, store: Store, executor: Executor, progress: Progress) -> None:
    """Run the cells that have no result in the store, or that could not run.

    Raises:
        ExecutorError: the executor cannot run them.
        KeyboardInterrupt: Ctrl-C; the cells that have ended are in the store.
    """
    missing = {planned.id: planned for planned in plan.cells if _is_missing(store.result(planned))}
    progress.began(len(missing))
    # Long cells first, so that none of them runs alone at the end.
    ordered = sorted(missing.values(), key=lambda each: (each.simulated, -len(each.cell.stages)))
    lines: dict[str, list[Json]] = {}
    with closing(executor.run(map(cell_run.job, ordered))) as reports:
        for report in reports:
            match report:
                case Line(job, value):
                    lines.setdefault(job.id, []).append(value)
                case Ended(job=job):
                    planned = missing[job.id]
                    cell_run.keep(planned, lines.pop(job.id, ()), report, store.folder(planned))
                    if (result := store.result(planned)) is not None:
                        progress.ended(result)
                case None:
                    progress.tick()


def _is_missing(result: CellResult | None) -> bool:
    return result is None or result.result.outcome is Outcome.ERROR


def collect(plan: MatrixPlan, store: Store, seconds: float) -> Report:
    """Return the report of the cells that have a result."""
    found = [(planned, store.result(planned)) for planned in plan.cells]
    cells = tuple(result for _, result in found if result is not None)
    return Report(
        plan=plan,
        directory=store.directory,
        cells=cells,
        unfinished=tuple(planned for planned, result in found if result is None),
        answers=judge(plan.matrix.answers, cells),
        version=version("nominee"),
        machine=machine(),
        seconds=seconds,
    )


def write(report: Report, store: Store) -> tuple[str, ...]:
    """Write the reports into the store's directory; return their names."""
    document = report.as_json()
    proofs = {cell.planned.id: evidence.read(store.folder(cell.planned)) for cell in report.cells}
    files = {
        reports.NAME: json.dumps(document, indent=2) + "\n",
        "index.html": page.page(document, proofs),
        "junit.xml": junit.as_junit(report),
        "report.md": markdown.as_markdown(document),
    }
    for kep in sorted({cell.planned.cell.row.kep for cell in report.cells} - {0}):
        files[f"kep-{kep}.md"] = kep_page.kep_page(document, kep)
    for name, text in files.items():
        write_atomically(store.directory / name, text)
    return tuple(files)
