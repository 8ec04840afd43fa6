"""One command with one mutation, as a job in a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nominee.lab.jobs.job import Job, Write
from nominee.machinery.runtime.clock import SystemClock
from tests.mutations.launch import prepare
from tests.mutations.standard.commands import Command

SECONDS_BESIDE: Final = 300.0
"""Beyond its own time a command may take so long: to start its clusters, and to come to rest."""
TIMES_LONGER_MAX: Final = 3
"""By so much simulated time may pass more slowly than the clock, on a busy machine."""
OUTPUT: Final = "output.txt"
_PROGRAM: Final = "nominee.cli"
_ERROR_LENGTH_MAX: Final = 500


def job_of(mutation: str, command: Command) -> Job:
    """Return the job of a command with a mutation, or without one ("")."""
    return Job(
        id=f"{mutation} {command.label}",
        function="tests.mutations.standard.job:run",
        arguments=(mutation, command.words),
        noun=f"{command.label} with {mutation or 'no mutation'}",
        seconds_max=TIMES_LONGER_MAX * command.seconds + SECONDS_BESIDE,
        output=OUTPUT,
        own_temporary_files=True,
    )


def run(_directory: Path, write: Write, mutation: str, words: Sequence[str]) -> None:
    """Run the command in this process, and write what it found."""
    if mutation:
        prepare(mutation, _PROGRAM, words)
    sys.argv = [_PROGRAM, *words]
    printed, began = io.StringIO(), SystemClock().monotonic()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        runpy.run_module(_PROGRAM, run_name="__main__", alter_sys=True)
    write({**read(printed.getvalue()), "seconds": round(SystemClock().monotonic() - began, 1)})


def read(output: str) -> dict[str, Any]:
    """Return observation, case, error and runs of a command's JSON."""
    try:
        document = json.loads(output)
    except ValueError:
        return {"error": f"its output is no JSON: {output[:_ERROR_LENGTH_MAX]!r}"}
    if "runs" in document:
        return _of_random_runs(document["runs"])
    (report,) = document["explorations"]
    first = report["broken"][0] if report["broken"] else {"case": "", "observation": ""}
    return {
        "observation": first["observation"],
        "case": first["case"],
        "error": report["error"],
        "runs": report["runs"],
    }


def _of_random_runs(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    failed = next((each for each in runs if each["problems"]), None)
    if failed is None:
        return {"runs": len(runs)}
    problem = "; ".join(failed["problems"])
    outcome = (
        {"observation": problem, "case": f"seed {failed['seed']}"} if failed["ran"] else {"error": problem}
    )
    return {**outcome, "runs": len(runs)}
