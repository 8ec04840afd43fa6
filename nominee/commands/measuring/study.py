"""`nominee study`: measure the open questions of a KEP, in simulations and on real processes."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import end_as_by_ctrl_c, output_option
from nominee.commands.measuring.executors import executor_of, executor_option
from nominee.lab.bench.machine import machine
from nominee.lab.commit import commit
from nominee.lab.extras import installation
from nominee.lab.study.settings import FULL, QUICK, SEEDS_MAX, Scenario, Sizes
from nominee.scheduler.framework.resize_preemption import Tracking

if TYPE_CHECKING:
    from nominee.lab.study.results import Run

_COLUMNS_MIN = 150
"""Narrower terminals break the lines of the tables."""


@click.group()
def study() -> None:
    """Measure the open questions of a KEP, in simulations and on real processes."""


@study.command("resize-preemption")
@click.option(
    "--seeds",
    type=click.IntRange(1, SEEDS_MAX),
    help="Simulated trials of each kind; a quarter of them where setups are only compared."
    f"  [default: {FULL.seeds}; with --quick {QUICK.seeds}]",
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
@click.option("--quick", is_flag=True, help="A few trials of each kind, and 50 deferred pods.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="processors",
    help="Processes that simulate different seeds.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the results from this file, which -o json printed, instead of measuring. Repeatable: the"
    " results of a setup are those of the last file that has it.",
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
    jobs: int,
    inputs: tuple[Path, ...],
    html: Path | None,
    scheduler_address: str,
    output: str,
) -> None:
    """Measure the questions that KEP-5836 leaves open for beta, for each option against double preemption.

    Simulated, because the order of events decides: the scheduler is killed during a preemption (crash);
    victims terminate for long (grace); a second resize takes the room of the first (races); the kubelet
    preempts, too (kubelet); a policy that was just stored (policy-lag); the example of "Risk of Additional
    Preemption" (four-pods). On real processes, because time counts: new pods beside 1,000 deferred ones
    (throughput). Everything takes about 90 minutes of processor time and 20 minutes more, with --quick
    about 2. The results, and how to read them: docs/studies/README.md.
    """
    if html is not None:
        _check_plots()
    if inputs:
        if seeds or trackings or scenarios or quick:
            raise click.UsageError("--input has the results; it cannot be combined with what is measured")
        runs = _read(inputs)
    else:
        sizes = QUICK if quick else FULL
        if seeds is not None:
            sizes = replace(sizes, seeds=seeds, seeds_of_others=(seeds + 3) // 4)
        chosen = [Tracking(one) for one in trackings] or list(Tracking)
        runs = [
            _measure(
                chosen, [Scenario(one) for one in scenarios] or list(Scenario), sizes, jobs, scheduler_address
            )
        ]
    if output == "json":
        # 80 ms that --help and completion would pay.
        from nominee.lab.study.results import text_of

        click.echo(text_of(runs))
    else:
        _print(runs)
    if html is not None:
        # 130 ms that --help and completion would pay.
        from nominee.lab.study.pages.page import page

        html.write_text(page(runs), encoding="utf-8")


def _check_plots() -> None:
    if find_spec("pygal") is None:
        raise click.ClickException(f"--html needs pygal: {installation('study')}")


def _read(paths: tuple[Path, ...]) -> list[Run]:
    # 80 ms that --help and completion would pay.
    from nominee.lab.study.results import ReportError, read

    runs: list[Run] = []
    for path in paths:
        try:
            runs += read([path.read_text(encoding="utf-8")])
        except (ReportError, UnicodeDecodeError) as error:
            raise click.BadParameter(f"{path}: {error}", param_hint="'--input'") from None
    return runs


def _measure(
    trackings: list[Tracking], scenarios: list[Scenario], sizes: Sizes, jobs: int, scheduler_address: str
) -> Run:
    # 100 ms that --help and completion would pay.
    from nominee.lab.jobs.job import ExecutorError
    from nominee.lab.study.results import Run
    from nominee.lab.study.runner import StudyError, measure

    end_as_by_ctrl_c()
    try:
        rows = measure(
            trackings,
            scenarios,
            sizes,
            executor_of(scheduler_address, jobs),
            executor_of(scheduler_address),
            lambda text: click.echo(text, err=True),
        )
    except (StudyError, ExecutorError) as error:
        raise click.ClickException(str(error)) from None
    return Run(version=version("nominee"), commit=commit(), machine=machine(), rows=rows)


def _print(runs: list[Run]) -> None:
    # 130 ms that --help and completion would pay.
    from rich.console import Console
    from rich.table import Table

    from nominee.lab.study.pages.data import Data
    from nominee.lab.study.pages.tables import tables

    console = Console(highlight=False)
    console.width = max(console.width, _COLUMNS_MIN)
    for table in tables(Data.of(runs)):
        shown = Table(title=table.title, title_justify="left")
        for number, column in enumerate(table.columns):
            shown.add_column(column, overflow="fold", no_wrap=number == 0)
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
