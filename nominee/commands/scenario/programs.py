"""`--replace`, of the commands that start clusters for scenarios and random runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import click

replace_option = click.option(
    "--replace",
    multiple=True,
    metavar="COMPONENT=COMMAND",
    help="Run another program in the place of a component, such as the real kube-scheduler "
    "(docs/scenarios.md). Repeatable.",
)


def programs_of(texts: Sequence[str], *, simulate: bool) -> dict[str, tuple[str, ...]]:
    """Return the command lines of --replace by component.

    Raises:
        click.UsageError: a value cannot be read, a program is not installed, or the run is a simulation.
    """
    if not texts:
        return {}
    # 200 ms that --help and completion would pay.
    from nominee.lab.scenario.format.replacing import ReplaceError, parse_programs

    try:
        found = parse_programs(texts)
    except ReplaceError as error:
        raise click.UsageError(f"--replace: {error}") from None
    if simulate:
        raise click.UsageError("--replace: programs that are not Nominee's cannot be simulated")
    for command in found.values():
        if shutil.which(command[0]) is None:
            raise click.UsageError(f"--replace: the program {command[0]} is not installed")
    return found
