"""Options that `nominee chaos explore` and `nominee chaos run` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click

from nominee.commands.common import F, WritableDirectory

ROUNDS_MAX: Final = 1_000_000


def run_options(
    *, seed: str, kept: str, rounds: str, verbose: str, needs_seed: bool = False
) -> Callable[[F], F]:
    """Add --seed, --rounds, --dir and --verbose.

    `kept` says when a temporary directory is kept; `seed`, `rounds` and `verbose` are the help of these
    options. Without `needs_seed` the seed may be None.
    """

    def decorate(command: F) -> F:
        for option in (
            click.option("--verbose", is_flag=True, help=verbose),
            click.option(
                "--dir",
                "directory",
                type=WritableDirectory(),
                help=f"Keep the clusters below this directory.  [default: a temporary one, kept {kept}]",
            ),
            click.option(
                "--rounds",
                type=click.IntRange(1, ROUNDS_MAX),
                default=1,
                show_default=True,
                help=rounds,
            ),
            click.option("--seed", type=click.IntRange(min=0), required=needs_seed, help=seed),
        ):
            command = option(command)
        return command

    return decorate
