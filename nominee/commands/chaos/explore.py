"""`nominee chaos`, and `nominee chaos explore`."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.chaos.generate import generate
from nominee.commands.chaos.option_types import Actions, Duration, Identifier
from nominee.commands.chaos.options import run_options
from nominee.commands.chaos.outcomes import (
    RECORD,
    REPLAY,
    UPDATE,
    outcomes_option,
    record_outcomes,
    recorded_outcomes,
    selection,
)
from nominee.commands.chaos.run import run
from nominee.commands.chaos.scenario_files import find_scenarios
from nominee.commands.common import end_as_by_ctrl_c, output_option
from nominee.commands.measuring.executors import executor_of, executor_option
from nominee.commands.pages import html_option, write_page
from nominee.commands.scenario.programs import programs_of, replace_option
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.perturbations import Action, Jump, Loss, Move, Partition, View

if TYPE_CHECKING:
    from nominee.lab.chaos.cases.enumeration import Scope
    from nominee.lab.chaos.clusters import Clusters
    from nominee.lab.chaos.explorer import ExplorationSettings, Report
    from nominee.lab.chaos.outcomes.comparison import Outcomes
    from nominee.lab.scenario.format.model import Scenario
    from nominee.lab.scenario.format.replacing import Programs

_FORMATS = ("text", "json", "markdown")
_SEED_MAX = 1_000_000
HITS_MAX = 1000
TOGETHER_MAX = 8


@click.group()
def chaos() -> None:
    """Break a cluster systematically or at random, and report the violations.

    See docs/chaos.md.
    """


chaos.add_command(generate)
chaos.add_command(run)


@chaos.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--name", default="", help="Only the scenario of this name.  [default: all of the files]")
@click.option(
    "--budget", type=Duration(), default="10m", show_default=True, help="Time for all cases of a scenario."
)
@click.option(
    "--cases",
    "cases_max",
    type=click.IntRange(min=0),
    help="At most so many cases of a scenario; 0: its undisturbed run alone.  [default: as time allows]",
)
@click.option(
    "--actions",
    type=Actions(),
    default=",".join(each.value for each in Action),
    show_default=True,
    help="What happens at failpoints.",
)
@click.option("--views/--no-views", default=True, help="Change what processes see, too.  [default: --views]")
@click.option("--calls/--no-calls", default=True, help="Fail calls, and cut links, too.  [default: --calls]")
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
@click.option(
    "--rules-only",
    is_flag=True,
    help="In disturbed runs steps and checks may fail: only the invariants and the rules of rest count.",
)
@outcomes_option
@click.option("--stop", is_flag=True, help="End at the first case that breaks.")
@replace_option
@executor_option
@html_option("Write a page of the cases to this file, with logs and time lines of those that broke.")
@output_option(*_FORMATS)
def explore(
    files: tuple[Path, ...],
    name: str,
    budget: float,
    cases_max: int | None,
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
    rules_only: bool,
    outcomes: str,
    stop: bool,
    replace: tuple[str, ...],
    verbose: bool,
    scheduler_address: str,
    html: Path | None,
    output: str,
) -> None:
    """Run each scenario once for each failpoint that it passes and each action.

    And once for each changed watch, failed call, cut link, shifted clock and restart, and each move to an API
    server that lags, if there are several; then with pairs. The exit status is 0 if everything held, 1 if
    something broke, 2 if a scenario could not be run or no case took place, 130 after Ctrl-C.
    """
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.explorer import ExplorationSettings

    if scheduler_address and verbose:
        raise click.UsageError("--verbose is for this machine: workers do not send the steps")
    programs = programs_of(replace, simulate=simulate)
    scenarios = find_scenarios(files, name, is_one=case is not None or html is not None)
    scenarios = [_with_programs(each, programs) for each in scenarios]
    recorded = recorded_outcomes(outcomes, scenarios, are_whole=simulate and case is None, simulate=simulate)
    end_as_by_ctrl_c()
    base = directory.absolute() if directory else Path(tempfile.mkdtemp(prefix="nominee-chaos-"))
    scope = replaced(
        _disturbances(views=views, calls=calls, clocks=clocks),
        actions=actions,
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
        cases_max=0 if outcomes == RECORD and cases_max is None else cases_max,
        rounds_max=rounds if simulate and case is None else 1,
        stops=stop,
        rules_only=rules_only or outcomes in (RECORD, REPLAY, UPDATE),
        replays=outcomes in (REPLAY, UPDATE),
        records=selection(outcomes),
        programs=programs,
    )
    clusters = partial(
        _clusters,
        scheduler_address=scheduler_address,
        simulate=simulate,
        keep_all=directory is not None,
        verbose=verbose,
    )
    reports = _explored(scenarios, base, clusters, settings, recorded, output)
    _print(reports, html, output)
    sys.exit(_exit_status(reports))


def _disturbances(*, views: bool, calls: bool, clocks: bool) -> Scope:
    """Return the scope of the disturbances that options leave out."""
    from nominee.lab.chaos.cases.enumeration import Scope  # 100 ms that --help and completion would pay

    return Scope(
        views=tuple(View) if views else (),
        moves=tuple(Move) if views else (),
        losses=tuple(Loss) if calls else (),
        partitions=tuple(Partition) if calls else (),
        jumps=tuple(Jump) if clocks else (),
    )


def _exit_status(reports: Sequence[Report]) -> int:
    if any(report.broken for report in reports):
        return 1
    return 2 if any(report.error or not report.applied_count for report in reports) else 0


def _clusters(
    scenario: Scenario,
    base: Path,
    *,
    scheduler_address: str,
    simulate: bool,
    keep_all: bool,
    verbose: bool,
) -> Clusters:
    """Return the clusters that the cases run on; their files go below `base`."""
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.clusters import JobClusters, RealClusters, SimulatedClusters

    if scheduler_address:
        return JobClusters(scenario, executor_of(scheduler_address), base, simulate=simulate)
    if simulate:
        return SimulatedClusters(scenario, base, verbose=verbose)
    return RealClusters(scenario, base, keep_all=keep_all, verbose=verbose)


def _explored(
    scenarios: Sequence[Scenario],
    base: Path,
    clusters: Callable[[Scenario, Path], Clusters],
    settings: ExplorationSettings,
    recorded: Mapping[tuple[str, str], Outcomes],
    output: str,
) -> list[Report]:
    """Explore the scenarios one after another; `stops` ends them with the first one that breaks.

    With `records` the outcomes of each are written, if they are new.

    Of several scenarios each has a folder in `base`. Folders without files are removed.
    """
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.explorer import Explorer

    say = partial(click.echo, err=output != _FORMATS[0])
    reports: list[Report] = []
    for scenario in scenarios:
        folder = base / scenario.name if len(scenarios) > 1 else base
        own = replaced(settings, outcomes=recorded.get((scenario.file, scenario.name)))
        try:
            reports.append(Explorer(scenario, clusters(scenario, folder), own, say).run())
        finally:
            for each in (folder, base):
                if each.is_dir() and not any(each.iterdir()):
                    shutil.rmtree(each, ignore_errors=True)
        if settings.records is not None and reports[-1].is_new:
            record_outcomes(reports[-1])
        if settings.stops and reports[-1].broken:
            break
    return reports


def _print(reports: Sequence[Report], html: Path | None, output: str) -> None:
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.reporting import pages, report

    if html is not None:
        write_page(html, pages.exploration_page(reports[0]))
    if output == "json":
        click.echo(report.as_json(reports))
    elif output == "markdown":
        click.echo(report.as_markdown(reports))
    else:
        for line in (line for each in reports for line in report.as_text(each)):
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
