"""`nominee verify`: check the invariants on the history of a cluster that runs, or ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from nominee.commands.common import directory_option, echo_json, end_as_by_ctrl_c, output_option
from nominee.commands.measuring.history import unreadable
from nominee.completion.candidates import completing

if TYPE_CHECKING:
    from nominee.lab.history.verification.verification import Verification

# The history imports gRPC and the messages: 300 ms that --help and completion of other commands would pay.


def _names() -> list[str]:
    from nominee.lab.history.invariants.table import CHECKERS

    return [checker.about.name for checker in CHECKERS]


class _Invariant(click.ParamType["str"]):
    """The name of an invariant."""

    name = "invariant"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return click.Choice(_names()).convert(value, param, ctx)


@click.command()
@directory_option
@click.option(
    "--invariant",
    "names",
    multiple=True,
    metavar="NAME",
    type=_Invariant(),
    shell_complete=completing(lambda _: _names()),
    help="Check this invariant only; may be repeated.  [default: all]",
)
@click.option("--list", "lists", is_flag=True, help="List the invariants with their exceptions, and exit.")
@output_option("table", "json")
def verify(directory: Path, names: tuple[str, ...], lists: bool, output: str) -> None:
    """Check the invariants on the cluster's history.

    The history is what etcd has not compacted, and D/history.gz if `nominee up --history` has recorded it.
    The etcd of a cluster that is down is started for the time of the check. The exit status is 1 if an
    invariant is violated, 2 if the history cannot be read, 130 after Ctrl-C.
    """
    from nominee.lab.history.verification import report

    if lists:
        _print(report.list_json, lambda: list(report.list_lines()), output)
        return
    end_as_by_ctrl_c()
    verification = _verify(directory, names)
    _print(lambda: report.as_json(verification), lambda: list(report.lines(verification)), output)
    if not verification.holds:
        raise SystemExit(1)


def _print(document: Callable[[], object], lines: Callable[[], list[str]], output: str) -> None:
    if output == "json":
        echo_json(document())
        return
    for line in lines():
        click.echo(line)


def _verify(directory: Path, names: tuple[str, ...]) -> Verification:
    from nominee.lab.history.verification.reading import is_running, readable
    from nominee.lab.history.verification.verification import verify as verify_history
    from nominee.machinery.runtime.clock import SystemClock

    async def work() -> Verification:
        return await verify_history(directory, SystemClock(), names=names or None, is_running=runs)

    runs = is_running(directory)
    with unreadable(directory), readable(directory):
        return anyio.run(work)
