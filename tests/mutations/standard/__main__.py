"""Run the standard commands with each mutation, and print which of them found it: `make mutations`.

A mutation's commands end with the first finding. What was run is in a file: a stopped run goes on. The exit
status is 1 if a known mutation is not found, if less than 80 % of the unseen ones are, or if the program
itself is reported; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from nominee.lab.commit import commit
from nominee.lab.jobs.job import Ended, Job, Line
from nominee.lab.jobs.local import LocalExecutor
from nominee.localcluster.output import INTERRUPTED
from nominee.machinery.wire.values.scalars import parse_seconds
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.launch import BY_NAME, ROOT
from tests.mutations.standard.commands import Command, standard_commands
from tests.mutations.standard.job import OUTPUT, Task, job_of
from tests.mutations.standard.results import UNMUTATED, Result, Results
from tests.mutations.standard.schedule import pending
from tests.mutations.standard.table import Chosen, lines, problems
from tests.mutations.unseen.table import UNSEEN_BY_NAME

RESULTS: Final = ROOT / "build" / "mutations" / "results.jsonl"
_TAIL_LENGTH_MAX: Final = 500


def main(argv: list[str]) -> int:
    """Run what was not run yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.standard", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", choices=[*BY_NAME], default=[])
    parser.add_argument(
        "--command",
        default="*",
        metavar="PATTERN",
        help="only the commands whose label matches, as in a shell",
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many commands run at a time")
    parser.add_argument(
        "--budget", type=parse_seconds, metavar="TIME", help="the most that one command gets, as 20s"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    given = parser.parse_args(argv)
    chosen = _chosen(given.only)
    commands = standard_commands((ROOT / "Makefile").read_text(encoding="utf-8"))
    commands = tuple(each for each in commands if fnmatchcase(each.label, given.command))
    if given.budget is not None:
        commands = tuple(each.limited(given.budget) for each in commands)
    results = Results(given.results, commit())
    # The processes of jobs, and those that they start, have no working directory on their path (`-P`).
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        _run(chosen, commands, results, given.jobs)
    except KeyboardInterrupt:
        return INTERRUPTED
    for line in lines(chosen, results):
        print(line)
    found = problems(chosen, results)
    for problem in found:
        print(problem)
    return 1 if found else 0


def _chosen(only: list[str]) -> Chosen:
    return Chosen(
        known=[each.name for each in MUTATIONS if not only or each.name in only],
        unseen={name: each for name, each in UNSEEN_BY_NAME.items() if not only or name in only},
    )


def _run(chosen: Chosen, commands: tuple[Command, ...], results: Results, width: int) -> None:
    """Run the commands, and save each result as it comes."""
    started: dict[str, tuple[str, list[Task]]] = {}

    def jobs() -> Iterator[Job]:
        for mutation, due in pending(chosen.names, commands, results):
            job = job_of("" if mutation == UNMUTATED else mutation, due)
            started[job.id] = mutation, due
            yield job

    def add(mutation: str, command: Command, values: dict[str, Any]) -> None:
        result = Result(
            mutation=mutation,
            commit=commit(),
            words=command.words,
            **{"label": command.label, **values},
        )
        results.add(result)
        print(_progress(result), file=sys.stderr, flush=True)

    with closing(LocalExecutor(width).run(jobs())) as reports:
        for report in reports:
            if isinstance(report, Line):
                mutation, due = started[report.job.id]
                add(mutation, due.pop(0).command, report.value)
            elif isinstance(report, Ended):
                mutation, due = started[report.job.id]
                is_over = results.finding(mutation) is not None and mutation != UNMUTATED
                if due and not is_over:
                    error = f"{report.problem}: {_tail(report.directory)}"
                    add(mutation, due[0].command, {"error": error, "seconds": round(report.seconds, 1)})


def _progress(result: Result) -> str:
    outcome = result.observation or result.error or "nothing"
    return f"{result.mutation}: {result.label}, {result.seconds:.0f} s: {outcome}"


def _tail(directory: Path) -> str:
    """Return the end of what a job has printed."""
    try:
        text = (directory / OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return " ".join(text[-_TAIL_LENGTH_MAX:].split())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
