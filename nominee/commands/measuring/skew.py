"""`nominee skew run | report | schema`."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import end_as_by_ctrl_c
from nominee.commands.measuring.executors import executor_of, executor_option
from nominee.localcluster.output import INTERRUPTED

if TYPE_CHECKING:
    from nominee.lab.jobs.job import Executor
    from nominee.lab.skew.cells.store import Store
    from nominee.lab.skew.matrix.planning import MatrixPlan
    from nominee.lab.skew.pages.report import Report

_JOBS_MAX = 256
_JOBS_PER_CORE_MAX = 2
_IMPOSSIBLE = 2


@click.group()
def skew() -> None:
    """Play scenarios at many versions, feature gates and upgrade paths.

    A matrix is a YAML file with rows, each a scenario and what varies in it (docs/skew.md).
    """


@skew.command()
@click.argument("matrix", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--report",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("skew-report"),
    show_default=True,
    help="Directory of the reports (index.html, skew.json, junit.xml, report.md) and of each cell's files.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, _JOBS_MAX),
    default=2,
    show_default=True,
    help="Cells that run at the same time on this machine.",
)
@click.option("--full", is_flag=True, help="Run every combination, not only a pairwise selection.")
@click.option(
    "--only", default="", help="Run only the cells whose name contains this text, or matches it (*, ?)."
)
@click.option("--dry-run", is_flag=True, help="Print the names of the cells, and run none.")
@click.option("--real", is_flag=True, help="Run every cell on real processes.")
@click.option("--simulate", is_flag=True, help="Simulate every cell that can be simulated.")
@click.option("--resume", is_flag=True, help="Continue in a directory that has results: run the other cells.")
@executor_option
def run(
    matrix: Path,
    directory: Path,
    jobs: int,
    full: bool,
    only: str,
    dry_run: bool,
    real: bool,
    simulate: bool,
    resume: bool,
    scheduler_address: str,
) -> None:
    """Run the cells of a matrix, each on a cluster of its own.

    The matrix says which cells are simulated, and which run on real processes (`simulate`, docs/skew.md).

    The exit status is 0 only if every cell passed (or was skipped, for want of a program), 1 if one did
    not, 2 if the matrix has mistakes or cells cannot be run at all. Ctrl-C keeps the cells that have ended
    (exit status 130); --resume runs the others.
    """
    if real and simulate:
        raise click.UsageError("give --real or --simulate, not both")
    plan = _plan(matrix, full=full, only=only, real=real, simulate=simulate)
    if dry_run:
        _print_plan(plan)
        return
    # 400 ms that --help and completion would pay.
    from nominee.lab.skew.cells.store import Store, StoreError

    store = Store(directory)
    try:
        store.open(resume=resume)
    except StoreError as error:
        raise click.UsageError(str(error)) from None
    end_as_by_ctrl_c()
    with closing(store):
        sys.exit(_run(plan, store, _executor(scheduler_address, jobs)))


def _run(plan: MatrixPlan, store: Store, executor: Executor) -> int:
    # 440 ms that --help and completion would pay.
    from nominee.lab.jobs.job import ExecutorError
    from nominee.lab.skew import run as running
    from nominee.lab.skew.progress import TerminalProgress
    from nominee.machinery.runtime.clock import SystemClock

    clock = SystemClock()
    began = clock.monotonic()
    status, problem = 0, ""
    try:
        with TerminalProgress() as progress:
            running.run(plan, store, executor, progress)
    except KeyboardInterrupt:
        status, problem = INTERRUPTED, "interrupted"
    except (ExecutorError, OSError) as error:
        status, problem = _IMPOSSIBLE, str(error)
    report = running.collect(plan, store, clock.monotonic() - began)
    if report.cells:
        try:
            names = running.write(report, store)
        except OSError as error:
            status, problem = status or _IMPOSSIBLE, f"{problem}; ".lstrip("; ") + f"no report: {error}"
        else:
            _print_summary(report, store.directory, names)
    if problem:
        click.echo(f"{problem}; --resume runs the other cells" if report.cells else problem, err=True)
        return status
    return 0 if report.held else 1


def _executor(scheduler_address: str, jobs: int) -> Executor:
    cores = len(os.sched_getaffinity(0))
    if not scheduler_address and jobs > _JOBS_PER_CORE_MAX * cores:
        click.echo(
            f"--jobs {jobs} on {cores} cores: clusters may not start in time; such cells could not run",
            err=True,
        )
    return executor_of(scheduler_address, jobs)


def _plan(matrix: Path, *, full: bool, only: str, real: bool, simulate: bool) -> MatrixPlan:
    # 230 ms that --help and completion would pay.
    from nominee.lab.scenario.format.documents import InvalidScenarioError
    from nominee.lab.skew.matrix.model import Simulate
    from nominee.lab.skew.matrix.planning import plan
    from nominee.lab.skew.matrix.reading import read_matrix

    how = Simulate.NONE if real else Simulate.ALL if simulate else None
    try:
        found = plan(read_matrix(matrix), full=full, only=only, simulate=how)
    except InvalidScenarioError as error:
        raise click.UsageError(f"not valid:\n{error}") from None
    if not found.cells:
        raise click.UsageError(f"no cell matches --only {only!r}; --dry-run without it prints the names")
    return found


def _print_plan(plan: MatrixPlan) -> None:
    for planned in plan.cells:
        outside = (
            f"  (outside the skew policy: {planned.cell.unsupported[0]})" if planned.cell.unsupported else ""
        )
        simulated = "  (simulated)" if planned.simulated else ""
        click.echo(f"{planned.cell.name}{simulated}{outside}")
    reasons = Counter(left.reason for left in plan.left_out)
    for reason, count in reasons.most_common():
        click.echo(f"{count} combinations are impossible: {reason}", err=True)
    count = sum(planned.simulated for planned in plan.cells)
    click.echo(f"{len(plan.cells)} of {plan.possible} cells, {count} of them simulated", err=True)


def _print_summary(report: Report, directory: Path, names: tuple[str, ...]) -> None:
    # 350 ms that --help and completion would pay.
    from nominee.lab.scenario.result import Outcome
    from nominee.lab.skew.pages.report import Verdict

    for cell in report.cells:
        if cell.result.outcome in (Outcome.FAILED, Outcome.ERROR):
            click.echo(f"{cell.planned.cell.name}: {cell.result.reason}")
            click.echo(f"  again: {cell.reproduce(directory)}")
            click.echo(f"  history: {cell.history_command(directory)}")
    click.echo(f"{report.summary} in {report.seconds:.0f} s")
    counts = {verdict: sum(each.verdict is verdict for each in report.answers) for verdict in Verdict}
    if report.answers:
        text = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())
        click.echo(f"answers of KEPs: {text}")
    click.echo(
        f"{directory / 'index.html'} (also {', '.join(name for name in names if name != 'index.html')})"
    )


@skew.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--kep", type=click.IntRange(1), help="Print the page of this KEP.")
def report(directory: Path, kep: int | None) -> None:
    """Print the Markdown of a report: for a KEP's production-readiness section, or the page of a KEP."""
    # 310 ms that --help and completion would pay.
    from nominee.lab.skew.pages import report as reports
    from nominee.lab.skew.pages.kep_page import UnknownKEPError, kep_page
    from nominee.lab.skew.pages.markdown import as_markdown

    file = directory / reports.NAME
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise click.ClickException(
            f"there is no {file}; `nominee skew run MATRIX --report {directory}` writes it when it ends "
            "(--resume, if it was killed)"
        ) from None
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{file} is no report of `nominee skew run`: {error}") from None
    try:
        text = as_markdown(document) if kep is None else kep_page(document, kep)
    except UnknownKEPError as error:
        raise click.UsageError(str(error)) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(
            f"{file} is no report of this version of `nominee skew run`: {error!r}"
        ) from None
    click.echo(text, nl=False)


@skew.command()
def schema() -> None:
    """Print the JSON Schema of matrix files."""
    # 250 ms that --help and completion would pay.
    from nominee.lab.skew.matrix.reading import SCHEMA_FILE

    click.echo(SCHEMA_FILE.read_text(encoding="utf-8"), nl=False)
