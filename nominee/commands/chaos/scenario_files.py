"""The scenarios of the files that a command names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nominee.lab.scenario.format.model import Scenario


def find_scenarios(files: Sequence[Path], name: str, *, is_one: bool) -> list[Scenario]:
    """Return the scenarios of the files, or those of a name.

    Raises:
        click.UsageError: a file is invalid, or there is no such scenario, or more than one.
    """
    # 200 ms that --help and completion would pay.
    from nominee.lab.scenario.format.documents import InvalidScenarioError
    from nominee.lab.scenario.format.reading import read_file

    found: list[Scenario] = []
    for file in files:
        try:
            found += read_file(file)
        except InvalidScenarioError as error:
            raise click.UsageError(f"{file} is no scenario:\n{error}") from None
    chosen = [each for each in found if not name or each.name == name]
    if not chosen:
        raise click.UsageError(f"--name: there is no scenario {name}; there are {_names(found)}")
    if is_one and len(chosen) > 1:
        raise click.UsageError(
            f"--case and --html are for one scenario: give --name, one of {_names(chosen)}"
        )
    return chosen


def _names(scenarios: Sequence[Scenario]) -> str:
    return ", ".join(each.name for each in scenarios)
