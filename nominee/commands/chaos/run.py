"""`nominee chaos run`."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.chaos.option_types import Duration
from nominee.commands.chaos.options import run_options
from nominee.commands.common import echo_json, end_as_by_ctrl_c, output_option
from nominee.commands.pages import html_option, write_page
from nominee.commands.scenario.programs import programs_of, replace_option
from nominee.lab.commit import commit
from nominee.lab.jobs.job import Ended, Job, Line, Write
from nominee.lab.jobs.local import LocalExecutor
from nominee.lab.reports.junit import JUnitCase, Mark, junit

if TYPE_CHECKING:
    from nominee.lab.chaos.random.random_run import Outcome
    from nominee.lab.scenario.format.replacing import Programs

_FORMATS = ("text", "json", "junit")
RATE_MAX = 100.0


@click.command()
@click.option("--duration", type=Duration(), required=True, help="How long the load and the faults last.")
@click.option(
    "--rate",
    type=click.FloatRange(0.01, RATE_MAX),
    default=2.0,
    show_default=True,
    help="Operations each second, on average.",
)
@run_options(
    seed="Everything is drawn from the seed.",
    needs_seed=True,
    kept="after a failure",
    rounds="Run as many times, with the next seed each; ends at the first failure.",
    verbose="Print the operations.",
)
@replace_option
@html_option("Write a page of the runs to this file, with logs and time lines of those that are kept.")
@output_option(*_FORMATS)
def run(
    seed: int,
    duration: float,
    rate: float,
    rounds: int,
    directory: Path | None,
    verbose: bool,
    replace: tuple[str, ...],
    html: Path | None,
    output: str,
) -> None:
    """Disturb a cluster of real processes at random under random load.

    At the end every pod must come to rest, and the invariants must hold. The exit status is 0 if so, 1 if
    not, 2 if the run was not possible, 130 after Ctrl-C.
    """
    programs = programs_of(replace, simulate=False)
    end_as_by_ctrl_c()
    results = []
    for number in range(rounds):
        if rounds == 1:
            result = one(seed + number, duration, rate, directory, programs, verbose=verbose)
        else:
            result = _in_own_process(seed + number, duration, rate, directory, programs, verbose=verbose)
        results.append(result)
        if output == _FORMATS[0]:
            for line in _text(result):
                click.echo(line)
        if result["problems"]:
            break
    if html is not None:
        # 330 ms that --help and completion would pay.
        from nominee.lab.chaos.reporting import pages

        write_page(html, pages.random_runs_page(results))
    if output == "json":
        echo_json({"runs": results})
    elif output == "junit":
        click.echo(_junit(results))
    sys.exit(max(_status(result) for result in results))


def _words(seed: int, duration: float, rate: float) -> list[str]:
    """Return the subcommand and options of a run."""
    return ["chaos", "run", "--seed", str(seed), "--duration", f"{duration:g}s", "--rate", f"{rate:g}"]


def _in_own_process(
    seed: int, duration: float, rate: float, directory: Path | None, programs: Programs, *, verbose: bool
) -> dict[str, object]:
    """Run as `one` does, in a process of its own: this one must not use gRPC and fork.

    Raises:
        click.ClickException: the process ended without a result.
    """
    job = Job(
        id=f"seed-{seed}",
        function="nominee.commands.chaos.run:run_one",
        arguments=(seed, duration, rate, directory, programs, verbose),
        noun=f"run with seed {seed}",
    )
    result: dict[str, object] = {}
    with closing(LocalExecutor().run([job])) as reports:
        for each in reports:
            if isinstance(each, Line):
                result = each.value
            elif isinstance(each, Ended) and not result:
                raise click.ClickException(each.problem)
    return result


def run_one(
    _directory: Path,
    write: Write,
    seed: int,
    duration: float,
    rate: float,
    directory: Path | None,
    programs: Programs,
    verbose: bool,
) -> None:
    """Run with one seed, as a job."""
    end_as_by_ctrl_c()
    write(one(seed, duration, rate, directory, programs, verbose=verbose))


def one(
    seed: int,
    duration: float,
    rate: float,
    directory: Path | None,
    programs: Programs,
    *,
    verbose: bool,
) -> dict[str, object]:
    """Run with one seed, and return the result as JSON."""
    # 330 ms that --help and completion would pay.
    from nominee.lab.chaos.random.random_cluster import run_real
    from nominee.lab.history.object_history import command
    from nominee.lab.scenario.format.replacing import words_of
    from nominee.localcluster.cluster import ClusterError

    def say(text: str) -> None:
        if verbose:
            click.echo(text, err=True)

    base = (
        directory.absolute() / f"seed-{seed}"
        if directory
        else Path(tempfile.mkdtemp(prefix="nominee-chaos-"))
    )
    outcome, error = None, ""
    try:
        outcome = run_real(base, seed, duration, rate, say, programs)
    except ClusterError as caught:
        error = str(caught)
    except KeyboardInterrupt:
        if directory is None:
            shutil.rmtree(base, ignore_errors=True)
        raise
    problems = [error] if error else _problems(outcome)
    keep = directory is not None or bool(problems)
    if not keep:
        shutil.rmtree(base, ignore_errors=True)
    words = ["nominee", *_words(seed, duration, rate), *words_of(programs)]
    return {
        "seed": seed,
        "version": version("nominee"),
        "commit": commit(),
        "reproduce": shlex.join(words),
        "ran": outcome is not None,
        "problems": problems,
        "seconds": round(outcome.seconds, 3) if outcome else 0.0,
        "pods": outcome.pods if outcome else 0,
        "operations": dict(sorted(outcome.operations.items())) if outcome else {},
        "refused": dict(sorted(outcome.refused.items())) if outcome else {},
        "directory": str(base) if keep else "",
        "history": command(str(base), _at_fault(outcome)) if keep else "",
    }


def _problems(outcome: Outcome | None) -> list[str]:
    if outcome is None:
        return []
    found = [f"{each.invariant}: {each.message} ({', '.join(each.objects)})" for each in outcome.violations]
    return [*found, f"the cluster does not come to rest: {outcome.unsettled}"] if outcome.unsettled else found


def _at_fault(outcome: Outcome | None) -> list[str]:
    return [] if outcome is None else [each for found in outcome.violations[:1] for each in found.objects]


def _status(result: dict[str, object]) -> int:
    if not result["ran"]:
        return 2
    return 1 if result["problems"] else 0


def _text(result: dict[str, object]) -> list[str]:
    counts = result["operations"]
    assert isinstance(counts, dict)
    by_kind = ", ".join(f"{count} {name}" for name, count in counts.items())
    lines = [
        f"seed {result['seed']}: {sum(counts.values())} operations in {result['seconds']} s ({by_kind}); "
        f"{result['pods']} pods at the end"
    ]
    problems = result["problems"]
    assert isinstance(problems, list)
    if problems:
        lines += [f"failed: {problem}" for problem in problems]
        lines.append(f"  version {result['version']} commit {result['commit'] or 'unknown'}")
        if result["directory"]:
            lines += [f"  logs and history: {result['directory']}", f"  history: {result['history']}"]
        lines.append(f"  reproduce: {result['reproduce']}")
    return lines


def _junit(results: list[dict[str, object]]) -> str:
    """Return JUnit's XML: one test case for each seed."""
    return junit("nominee chaos run", [_case(result) for result in results])


def _case(result: dict[str, object]) -> JUnitCase:
    problems = result["problems"]
    assert isinstance(problems, list)
    return JUnitCase(
        name=f"seed {result['seed']}",
        classname="chaos",
        seconds=float(str(result["seconds"])),
        mark=Mark.FAILURE if problems else None,
        message="; ".join(map(str, problems)),
        details=_text(result) if problems else (),
    )
