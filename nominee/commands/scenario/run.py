"""`nominee scenario run | validate | schema | record`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import WritableDirectory, directory_option, end_as_by_ctrl_c, version_options
from nominee.commands.pages import html_option, write_results
from nominee.commands.scenario.programs import programs_of, replace_option
from nominee.commands.scenario.simulation import SimulationOptions, run_simulated, simulation_options
from nominee.completion.candidates import completing, failpoint_settings
from nominee.localcluster.up_options.options import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nominee.lab.scenario.format.model import Scenario
    from nominee.lab.scenario.result import ScenarioResult

_FAILED, _INVALID = 1, 2
_FORMATS = ("text", "json", "junit", "markdown")
_files = click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


@click.group()
def scenario() -> None:
    """Run, check and record scenarios.

    A scenario is a YAML file with a cluster, steps and expectations (docs/scenarios.md).
    """


@scenario.command()
@_files
@click.option("--name", "chosen", multiple=True, help="Run only the scenario of this name. Repeatable.")
@click.option(
    "--dir",
    "directory",
    type=WritableDirectory(),
    help="Where each scenario has its directory, which must be new or empty.  [default: a temporary one]",
)
@click.option(
    "--share-clusters",
    is_flag=True,
    help="Run scenarios with the same spec.cluster on one cluster, which is cleaned up between them.",
)
@click.option("--keep", is_flag=True, help="Keep the directories of scenarios that held, too.")
@simulation_options
@version_options
@click.option(
    "--failpoints",
    multiple=True,
    metavar="COMPONENT=NAME=ACTION",
    shell_complete=completing(failpoint_settings),
    help="Arm a failpoint before the first step of each scenario. Repeatable.",
)
@replace_option
@html_option("Write a page of the results to this file, with steps, logs and time lines.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(_FORMATS),
    default=_FORMATS[0],
    show_default=True,
    help="Format of the results; steps are printed as text, on standard error if this is not text.",
)
def run(
    files: tuple[Path, ...],
    chosen: tuple[str, ...],
    directory: Path | None,
    share_clusters: bool,
    keep: bool,
    simulation: SimulationOptions | None,
    emulated_version: tuple[str, ...],
    feature_gates: tuple[str, ...],
    failpoints: tuple[str, ...],
    replace: tuple[str, ...],
    html: Path | None,
    output: str,
) -> None:
    """Run scenarios, each on a cluster of its own: real processes, or with --simulate a simulation.

    The exit status is 0 only if everything held, 1 if something failed, 2 if a file is invalid or a scenario
    could not be played, 130 after Ctrl-C. Logs and history are kept if a scenario failed.
    """
    # 330 ms that --help and completion would pay.
    from nominee.lab.scenario.clusters.run_options import RunOptions
    from nominee.lab.scenario.play.running import RunSettings, run_apart, run_shared, used_directory

    scenarios = _choose(_read(files), chosen)
    try:
        programs = programs_of(replace, simulate=simulation is not None)
        run_options = RunOptions.parse(emulated_version, feature_gates, failpoints, programs)
    except OptionError as error:
        raise click.UsageError(str(error)) from None
    if directory is not None and simulation is None and (used := used_directory(scenarios, directory)):
        raise click.UsageError(f"--dir: {used} has files; remove it, or give another directory")
    end_as_by_ctrl_c()
    base = directory.absolute() if directory else Path(tempfile.mkdtemp(prefix="nominee-scenario-"))
    # The page is made of the directories.
    settings = RunSettings(
        base=base, keep=keep or html is not None, options=run_options, to_stderr=output != _FORMATS[0]
    )
    try:
        if simulation is not None:
            results = run_simulated(scenarios, simulation, settings)
        else:
            results = (run_shared if share_clusters else run_apart)(scenarios, settings)
        if html is not None:
            title = ", ".join(map(str, files))
            results = write_results(html, results, f"scenario run {title}", keep, simulation is not None)
    except KeyboardInterrupt:
        if html is not None and not keep and directory is None:
            shutil.rmtree(base, ignore_errors=True)
        raise
    finally:
        _remove_if_empty(base)
    _show(results, output, simulated=simulation is not None)
    sys.exit(_status(results))


@scenario.command()
@_files
def validate(files: tuple[Path, ...]) -> None:
    """Check scenario files without a cluster.

    Messages name file, line and field. The exit status is 2 if a file is invalid.
    """
    # 200 ms that --help and completion would pay.
    from nominee.lab.scenario.format.documents import InvalidScenarioError
    from nominee.lab.scenario.format.reading import read_files

    try:
        found = read_files(files)
    except InvalidScenarioError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        sys.exit(_INVALID)
    click.echo(f"valid scenarios: {len(found)}")


@scenario.command()
def schema() -> None:
    """Print the JSON Schema of scenario files."""
    # 100 ms that --help and completion would pay.
    from nominee.lab.scenario.format.schema import SCHEMA_FILE

    click.echo(SCHEMA_FILE.read_text(encoding="utf-8"), nl=False)


def _read(files: Sequence[Path]) -> list[Scenario]:
    # 190 ms that --help and completion would pay.
    from nominee.lab.scenario.format.documents import InvalidScenarioError
    from nominee.lab.scenario.format.reading import read_files

    try:
        return read_files(files)
    except InvalidScenarioError as error:
        raise click.UsageError(f"not valid:\n{error}") from None


def _choose(scenarios: Sequence[Scenario], chosen: Sequence[str]) -> list[Scenario]:
    known = [each.name for each in scenarios]
    for name in chosen:
        if name not in known:
            raise click.UsageError(f"--name: no scenario {name!r}; these files have {', '.join(known)}")
    repeated = sorted({name for name in known if known.count(name) > 1})
    if repeated:
        raise click.UsageError(f"several scenarios have the name {repeated[0]}")
    return [each for each in scenarios if not chosen or each.name in chosen]


def _status(results: Sequence[ScenarioResult]) -> int:
    """Return the exit status: failed scenarios count more than those that could not be played."""
    # 13 ms that --help and completion would pay.
    from nominee.lab.scenario.result import Outcome

    outcomes = {result.outcome for result in results}
    if Outcome.FAILED in outcomes:
        return _FAILED
    return _INVALID if Outcome.ERROR in outcomes else 0


def _show(results: Sequence[ScenarioResult], output: str, *, simulated: bool) -> None:
    # 30 ms that --help and completion would pay.
    from nominee.lab.scenario.play.report import render, summary

    if output != _FORMATS[0]:
        click.echo(render(results, output))
        return
    for line in summary(results, simulated=simulated):
        click.echo(line)


def _remove_if_empty(base: Path) -> None:
    if base.exists() and not any(base.iterdir()):
        shutil.rmtree(base, ignore_errors=True)


@scenario.command()
@directory_option
@click.option("--name", default="recorded", show_default=True, help="Name of the scenario.")
@click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the scenario to this file.  [default: standard output]",
)
def record(directory: Path, name: str, file: Path | None) -> None:
    """Write a scenario from the actions in a running cluster until Ctrl-C.

    Recorded are objects that are created, patched and deleted by others than components, processes that are
    stopped, started and restarted, failpoints and faults. Add expectations to the result: the recording only
    expects the phases of the pods. It also ends when the cluster does.
    """
    # 210 ms that --help and completion would pay.
    from nominee.commands.scenario.record import run_recording

    run_recording(directory, name, file)
