"""`nominee study`: measure the open questions of a KEP on real processes."""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import echo_json, end_as_by_ctrl_c, output_option
from nominee.commands.measuring.executors import executor_of, executor_option
from nominee.lab.bench.machine import machine
from nominee.lab.extras import installation
from nominee.lab.study.settings import QUICK_SEEDS, SEEDS_MAX, Scenario
from nominee.scheduler.framework.api.deferred_resize import Tracking

if TYPE_CHECKING:
    from nominee.lab.study.pages.report import Report

_DEFAULT_SEEDS = 10
_COLUMNS_MIN = 150
"""Narrower terminals break the lines of the tables."""


@click.group()
def study() -> None:
    """Measure the open questions of a KEP on real processes."""


@study.command("resize-preemption")
@click.option(
    "--seeds",
    type=click.IntRange(1, SEEDS_MAX),
    help=f"Trials of each kind.  [default: {_DEFAULT_SEEDS}; with --quick {QUICK_SEEDS}]",
)
@click.option(
    "--option",
    "trackings",
    multiple=True,
    type=click.Choice([one.value for one in Tracking]),
    help="Measure only this value of the scheduler's --resize-preemption-tracking. Repeatable.",
)
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice([one.value for one in Scenario]),
    help="Run only this scenario. Repeatable.",
)
@click.option("--quick", is_flag=True, help="Fewer crash points, shorter grace periods, 50 deferred pods.")
@click.option(
    "--input",
    "input_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the results from this file, which -o json printed, instead of measuring.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help=f"Write a page with plots to this file. Needs the extra `study`: {installation('study')}",
)
@executor_option
@output_option("table", "json")
def resize_preemption(
    seeds: int | None,
    trackings: tuple[str, ...],
    scenarios: tuple[str, ...],
    quick: bool,
    input_file: Path | None,
    html: Path | None,
    scheduler_address: str,
    output: str,
) -> None:
    """Measure the questions that KEP-5836 leaves open for beta, for each option against double preemption.

    The scenarios: the scheduler is killed at each step of a preemption (crash); victims terminate for long
    while other pods of the node are deleted (grace); 1,000 pods are deferred (throughput); the example of
    "Risk of Additional Preemption" (four-pods). A run of everything takes 15 to 30 minutes on 2 cores,
    with --quick about 2. The results, and how to read them: docs/studies/README.md.
    """
    if html is not None:
        _check_plots()
    if input_file is not None:
        if seeds or trackings or scenarios or quick:
            raise click.UsageError("--input has the results; it cannot be combined with what is measured")
        report = _read(input_file)
    else:
        report = _measure(
            [Tracking(one) for one in trackings] or list(Tracking),
            [Scenario(one) for one in scenarios] or list(Scenario),
            seeds or (QUICK_SEEDS if quick else _DEFAULT_SEEDS),
            scheduler_address,
            quick=quick,
        )
    if output == "json":
        echo_json(report.document)
    else:
        _print(report)
    if html is not None:
        # 130 ms that --help and completion would pay.
        from nominee.lab.study.pages.page import page

        html.write_text(page(report), encoding="utf-8")


def _check_plots() -> None:
    if find_spec("pygal") is None:
        raise click.ClickException(f"--html needs pygal: {installation('study')}")


def _read(path: Path) -> Report:
    # 80 ms that --help and completion would pay.
    from nominee.lab.study.pages.report import ReportError, read

    try:
        return read(path.read_text(encoding="utf-8"))
    except (ReportError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="'--input'") from None


def _measure(
    trackings: list[Tracking], scenarios: list[Scenario], seeds: int, scheduler_address: str, *, quick: bool
) -> Report:
    # 100 ms that --help and completion would pay.
    from nominee.lab.jobs.job import ExecutorError
    from nominee.lab.study.pages.report import Report
    from nominee.lab.study.runner import StudyError, measure

    end_as_by_ctrl_c()
    with tempfile.TemporaryDirectory(prefix="nominee-study-") as directory:
        try:
            results = measure(
                Path(directory),
                trackings,
                scenarios,
                seeds,
                executor_of(scheduler_address),
                quick=quick,
                say=lambda text: click.echo(text, err=True),
            )
        except (StudyError, ExecutorError) as error:
            raise click.ClickException(str(error)) from None
    return Report(
        version=version("nominee"),
        seeds=seeds,
        quick=quick,
        machine=machine(),
        results=results,
    )


def _print(report: Report) -> None:
    # 130 ms that --help and completion would pay.
    from rich.console import Console
    from rich.table import Table

    from nominee.lab.study.pages.tables import tables

    console = Console(highlight=False)
    console.width = max(console.width, _COLUMNS_MIN)
    for table in tables(report):
        shown = Table(title=table.title, title_justify="left")
        for number, column in enumerate(table.columns):
            shown.add_column(column, overflow="fold", no_wrap=number == 0)
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
