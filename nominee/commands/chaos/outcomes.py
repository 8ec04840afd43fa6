"""`--outcomes` of `nominee chaos explore`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nominee.commands.chaos.scenario_files import find_scenarios

if TYPE_CHECKING:
    from nominee.lab.chaos.explorer import Report
    from nominee.lab.chaos.outcomes.comparison import Outcomes
    from nominee.lab.chaos.outcomes.selection import Selection
    from nominee.lab.scenario.format.model import Scenario

CHECK: Final = "check"
RECORD: Final = "record"
REPLAY: Final = "replay"
UPDATE: Final = "update"
_IGNORE: Final = "ignore"

outcomes_option: Final = click.option(
    "--outcomes",
    type=click.Choice((CHECK, REPLAY, RECORD, UPDATE, _IGNORE)),
    default=CHECK,
    show_default=True,
    help="With --simulate. check: compare with the recorded outcomes, if there are some. replay: run the "
    "recorded cases alone, at most --cases of them. record: those common to --rounds seeds, of the "
    "undisturbed run, and of those of --cases that take branches or disturb subjects of which few runs do. "
    "update: record the cases of the file again where a run is not as recorded, without those that break.",
)


def selection(outcomes: str) -> Selection | None:
    """Return the selection of cases to record; if it has to choose, the program is imported with marks."""
    if outcomes not in (RECORD, UPDATE):
        return None
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.outcomes import branches
    from nominee.lab.chaos.outcomes.selection import Selection

    if outcomes == RECORD:
        branches.watch()
    return Selection()


def recorded_outcomes(
    outcomes: str, scenarios: Sequence[Scenario], *, are_whole: bool, simulate: bool
) -> dict[tuple[str, str], Outcomes]:
    """Return the recorded outcomes to compare with or run again, by the file and the name of the scenarios.

    `are_whole`: the runs are simulations of more than one case.

    Raises:
        click.UsageError: a file of them cannot be read, or outcomes are not recorded of such runs.
    """
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.outcomes import file as outcomes_file

    if outcomes in (REPLAY, RECORD, UPDATE) and not are_whole:
        raise click.UsageError(f"--outcomes={outcomes} is for simulations, and not for one case")
    if not simulate or outcomes not in (CHECK, REPLAY, UPDATE):
        return {}
    try:
        return {
            (file, name): recorded
            for file in dict.fromkeys(each.file for each in scenarios)
            for name, recorded in outcomes_file.read(outcomes_file.path_for(Path(file))).items()
        }
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from None


def record_outcomes(report: Report) -> None:
    """Write the outcomes of a scenario that held, beside those that its file has of others."""
    if report.error or not report.facts:
        return
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.outcomes import file as outcomes_file

    file = Path(report.scenario.file)
    path = outcomes_file.path_for(file)
    known = outcomes_file.read(path) | {report.scenario.name: _outcomes(report)}
    names = [scenario.name for scenario in find_scenarios([file], "", is_one=False)]
    outcomes_file.write(path, {name: known[name] for name in names if name in known})
    click.echo(f"recorded: {path}", err=True)


def _outcomes(report: Report) -> Outcomes:
    # 100 ms that --help and completion would pay.
    from nominee.lab.chaos.outcomes.comparison import Outcomes, record

    return Outcomes(
        seeds=[report.seed + number for number in range(report.rounds)],
        plain=record(report.facts),
        cases={case: record(facts) for case, facts in report.facts_of_cases.items()},
    )
