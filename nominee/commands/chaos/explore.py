"""`nominee chaos`, and `nominee chaos explore`."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.chaos.generate import generate
from nominee.commands.chaos.option_types import Actions, Duration, Identifier
from nominee.commands.chaos.options import run_options
from nominee.commands.chaos.run import run
from nominee.commands.common import end_as_by_ctrl_c, output_option
from nominee.commands.measuring.executors import executor_of, executor_option
from nominee.commands.pages import html_option, write_page
from nominee.commands.scenario.programs import programs_of, replace_option
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.perturbations import Action, Jump, Loss, Move, View

if TYPE_CHECKING:
    from nominee.lab.chaos.explorer import Report
    from nominee.lab.scenario.format.model import Scenario
    from nominee.lab.scenario.format.replacing import Programs

_FORMATS = ("text", "json", "markdown")
_SEED_MAX = 1_000_000
HITS_MAX = 1000
TOGETHER_MAX = 4


@click.group()
def chaos() -> None:
    """Break a cluster systematically or at random, and report the violations.

    See docs/chaos.md.
    """


chaos.add_command(generate)
chaos.add_command(run)


@chaos.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", default="", help="The scenario of this name.  [default: the file's only one]")
@click.option("--budget", type=Duration(), default="10m", show_default=True, help="Time for all cases.")
@click.option(
    "--actions",
    type=Actions(),
    default=",".join(each.value for each in Action),
    show_default=True,
    help="What happens at failpoints.",
)
@click.option("--views/--no-views", default=True, help="Change what processes see, too.  [default: --views]")
@click.option("--calls/--no-calls", default=True, help="Fail single calls, too.  [default: --calls]")
@click.option("--clocks/--no-clocks", default=True, help="Shift clocks, too.  [default: --clocks]")
@click.option("--pairs", is_flag=True, help="After the single cases, pairs of those that held.")
@click.option(
    "--together",
    type=click.IntRange(1, TOGETHER_MAX),
    default=1,
    show_default=True,
    help="So many single cases, of several processes, may share a run; what breaks is run with less.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Only single cases that match, as in a shell. Repeatable.",
)
@click.option(
    "--hits",
    type=click.IntRange(1, HITS_MAX),
    default=2,
    show_default=True,
    help="At how many hits of a failpoint, or calls, a case is tried: the first, and others that are drawn.",
)
@click.option("--case", type=Identifier(), help="Run this case only.")
@click.option("--simulate", is_flag=True, help="Run in simulations of the seed (docs/simulation.md).")
@run_options(
    seed="Seed of the order of pairs, and of later hits.  [default: random]",
    kept="if something broke",
    rounds="With --simulate: repeat all cases with as many seeds, from --seed on.",
    verbose="Print the steps of each run.",
)
@click.option("--stop", is_flag=True, help="End at the first case that breaks.")
@replace_option
@executor_option
@html_option("Write a page of the cases to this file, with logs and time lines of those that broke.")
@output_option(*_FORMATS)
def explore(
    file: Path,
    name: str,
    budget: float,
    actions: tuple[Action, ...],
    views: bool,
    calls: bool,
    clocks: bool,
    pairs: bool,
    together: int,
    only: tuple[str, ...],
    hits: int,
    case: Case | None,
    seed: int | None,
    directory: Path | None,
    simulate: bool,
    rounds: int,
    stop: bool,
    replace: tuple[str, ...],
    verbose: bool,
    scheduler_address: str,
    html: Path | None,
    output: str,
) -> None:
    """Run a scenario once for each failpoint that it passes and each action.

    And once for each changed watch, failed call and shifted clock, and each move to an API server that lags,
    if there are several; then with pairs. The exit status is 0 if everything held, 1 if something broke, 2 if
    the scenario could not be run or no case took place, 130 after Ctrl-C.
    """
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.cases.enumeration import Scope
    from nominee.lab.chaos.clusters import Clusters, JobClusters, RealClusters, SimulatedClusters
    from nominee.lab.chaos.explorer import ExplorationSettings, Explorer

    if scheduler_address and verbose:
        raise click.UsageError("--verbose is for this machine: workers do not send the steps")
    programs = programs_of(replace, simulate=simulate)
    scenario = _with_programs(_find(file, name), programs)
    end_as_by_ctrl_c()
    base = directory.absolute() if directory else Path(tempfile.mkdtemp(prefix="nominee-chaos-"))
    scope = Scope(
        actions=actions,
        views=tuple(View) if views else (),
        losses=tuple(Loss) if calls else (),
        jumps=tuple(Jump) if clocks else (),
        moves=tuple(Move) if views else (),
        pairs=pairs,
        together=together,
        only=only,
        hits=hits,
        seed=random.SystemRandom().randrange(_SEED_MAX) if seed is None else seed,
    )
    settings = ExplorationSettings(
        scope=scope,
        budget_seconds=budget,
        case=case,
        simulate=simulate,
        rounds_max=rounds if simulate and case is None else 1,
        stops=stop,
        programs=programs,
    )
    clusters: Clusters
    if scheduler_address:
        clusters = JobClusters(scenario, executor_of(scheduler_address), base, simulate=simulate)
    elif simulate:
        clusters = SimulatedClusters(scenario, base, verbose=verbose)
    else:
        clusters = RealClusters(scenario, base, keep_all=directory is not None, verbose=verbose)
    try:
        report = Explorer(scenario, clusters, settings, partial(click.echo, err=output != _FORMATS[0])).run()
    finally:
        if base.exists() and not any(base.iterdir()):
            shutil.rmtree(base, ignore_errors=True)
    _print(report, html, output)
    if report.broken:
        sys.exit(1)
    sys.exit(2 if report.error or not report.applied_count else 0)


def _print(report: Report, html: Path | None, output: str) -> None:
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.reporting import pages
    from nominee.lab.chaos.reporting import report as reports

    if html is not None:
        write_page(html, pages.exploration_page(report))
    if output == "json":
        click.echo(reports.as_json([report]))
    elif output == "markdown":
        click.echo(reports.as_markdown([report]))
    else:
        for line in reports.as_text(report):
            click.echo(line)


def _with_programs(scenario: Scenario, programs: Programs) -> Scenario:
    """Return the scenario with programs in the places of components.

    Raises:
        click.UsageError: it needs Nominee's own.
    """
    # 200 ms that --help and completion would pay.
    from nominee.lab.scenario.format.replacing import adapt

    adapted = adapt(scenario, programs)
    if adapted.obstacle:
        raise click.UsageError(f"--replace: {adapted.obstacle}")
    return adapted.scenario


def _find(file: Path, name: str) -> Scenario:
    """Return a scenario of a file.

    Raises:
        click.UsageError: the file is invalid, or has no such scenario.
    """
    # 200 ms that --help and completion would pay.
    from nominee.lab.scenario.format.documents import InvalidScenarioError
    from nominee.lab.scenario.format.reading import read_file

    try:
        found = read_file(file)
    except InvalidScenarioError as error:
        raise click.UsageError(f"{file} is no scenario:\n{error}") from None
    chosen = [each for each in found if not name or each.name == name]
    if len(chosen) != 1:
        names = ", ".join(each.name for each in found)
        raise click.UsageError(f"--name: one of {names} is required")
    return chosen[0]
