"""`nominee chaos generate`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.chaos.option_types import Duration
from nominee.commands.chaos.options import ROUNDS_MAX
from nominee.commands.common import WritableDirectory, echo_json, end_as_by_ctrl_c, output_option
from nominee.commands.pages import html_option, write_page

if TYPE_CHECKING:
    from nominee.lab.chaos.generated.search import Searched

CASES_MAX = 1000
_FORMATS = ("text", "json")


@click.command()
@click.option("--seed", type=click.IntRange(min=0), required=True, help="The first seed.")
@click.option(
    "--rounds", type=click.IntRange(1, ROUNDS_MAX), default=ROUNDS_MAX, help="At most so many seeds."
)
@click.option(
    "--budget", type=Duration(), default="10m", show_default=True, help="Begin no seed after this time."
)
@click.option(
    "--cases",
    type=click.IntRange(0, CASES_MAX),
    default=8,
    show_default=True,
    help="Disturbed runs of each scenario, after the undisturbed one.",
)
@click.option(
    "--tries",
    type=click.IntRange(0, CASES_MAX),
    default=60,
    show_default=True,
    help="Smaller scenarios that are tried for a finding; 0 leaves it as it is.",
)
@click.option("--stop", is_flag=True, help="End at the first finding.")
@click.option(
    "--dir",
    "directory",
    type=WritableDirectory(),
    help="Where findings are written.  [default: a temporary directory]",
)
@html_option("Write a page of the seeds and their findings to this file.")
@output_option(*_FORMATS)
def generate(
    seed: int,
    rounds: int,
    budget: float,
    cases: int,
    tries: int,
    stop: bool,
    directory: Path | None,
    html: Path | None,
    output: str,
) -> None:
    """Generate a scenario from each seed, and run it in simulations, undisturbed and disturbed.

    A correct cluster comes to rest and keeps the invariants, whatever the scenario is. A finding is shrunk to
    the smallest scenario and disturbance that report the same, and written to a file. The exit status is 0 if
    all held, 1 if not, 2 if a scenario was not possible, 130 after Ctrl-C.
    """
    # 300 ms that --help and completion would pay.
    from nominee.lab.chaos.generated.search import Search

    end_as_by_ctrl_c()
    base = directory.absolute() if directory else Path(tempfile.mkdtemp(prefix="nominee-chaos-"))
    search = Search(base, cases, tries, lambda text: click.echo(text, err=True))
    results: list[Searched] = []
    try:
        for each in search.run(range(seed, seed + rounds), budget):
            results.append(each)
            if output == _FORMATS[0]:
                for line in _text(each):
                    click.echo(line)
            if stop and each.rule:
                break
    finally:
        if base.exists() and not any(base.iterdir()):
            shutil.rmtree(base, ignore_errors=True)
    if html is not None:
        # 100 ms that --help and completion would pay.
        from nominee.lab.chaos.reporting import pages

        write_page(html, pages.generation_page(results))
    if output == "json":
        echo_json({"runs": [_document(each) for each in results]})
    else:
        runs, found = sum(each.runs for each in results), sum(bool(each.rule) for each in results)
        click.echo(f"{len(results)} seeds in {runs} runs: {found} with findings")
    if any(each.rule for each in results):
        sys.exit(1)
    sys.exit(2 if any(each.error for each in results) else 0)


def _document(result: Searched) -> dict[str, object]:
    problem = result.observation or result.error
    return {**result.as_json(), "ran": not result.error, "problems": [problem] if problem else []}


def _text(result: Searched) -> list[str]:
    if result.error:
        return [f"seed {result.seed}: was not possible: {result.error}"]
    if not result.rule:
        return [f"seed {result.seed}: held, {result.runs} runs"]
    head = f"seed {result.seed}: {result.observation}"
    if result.known_seed >= 0:
        return [f"{head} (as seed {result.known_seed}; {result.case or 'undisturbed'})"]
    return [
        head,
        f"  scenario: {result.file} ({result.steps} steps)",
        f"  disturbance: {result.case or 'none'}",
        f"  reproduce: {result.reproduce}",
    ]
