"""`--outcomes` of `nominee chaos explore`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nominee.commands.chaos.scenario_files import find_scenarios

if TYPE_CHECKING:
    from nominee.lab.chaos.explorer import Report
    from nominee.lab.chaos.outcomes.comparison import Recorded
    from nominee.lab.scenario.format.model import Scenario

CHECK: Final = "check"
RECORD: Final = "record"
_IGNORE: Final = "ignore"

outcomes_option: Final = click.option(
    "--outcomes",
    type=click.Choice((CHECK, RECORD, _IGNORE)),
    default=CHECK,
    show_default=True,
    help="With --simulate: compare the undisturbed run with the recorded outcome, if there is one; or record "
    "outcomes, of the undisturbed runs of --rounds seeds.",
)


def recorded_outcomes(
    outcomes: str, scenarios: Sequence[Scenario], *, are_whole: bool
) -> dict[tuple[str, str], Recorded]:
    """Return the recorded outcomes to compare with, by the file and the name of the scenarios.

    `are_whole`: the runs are simulated ones of all that the scenarios have.

    Raises:
        click.UsageError: a file of them cannot be read, or outcomes are to be recorded of other runs.
    """
    if outcomes == RECORD and not are_whole:
        raise click.UsageError("--outcomes=record is for whole simulated runs: with --simulate alone")
    if outcomes != CHECK or not are_whole:
        return {}
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.outcomes import file as outcomes_file

    try:
        return {
            (file, name): recorded
            for file in dict.fromkeys(each.file for each in scenarios)
            for name, recorded in outcomes_file.read(outcomes_file.path_for(Path(file))).items()
        }
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None


def record_outcomes(reports: Sequence[Report]) -> None:
    """Write the outcomes of the scenarios that held, beside those that their files have of others."""
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.outcomes import file as outcomes_file
    from nominee.lab.chaos.outcomes.comparison import record

    for file in dict.fromkeys(each.scenario.file for each in reports):
        path = outcomes_file.path_for(Path(file))
        new = {
            each.scenario.name: record(each.facts)
            for each in reports
            if each.scenario.file == file and each.facts and not (each.error or each.broken)
        }
        names = [scenario.name for scenario in find_scenarios([Path(file)], "", is_one=False)]
        known = outcomes_file.read(path) | new
        outcomes_file.write(path, {name: known[name] for name in names if name in known})
        click.echo(f"recorded: {path}", err=True)
