"""Commands with one mutation, as a job in a process of its own.

Simulations count their processor time, so that a busy machine does not shorten them.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import resource
import runpy
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from nominee.lab.chaos import clusters, explorer, started_cluster, worker
from nominee.lab.chaos.generated import search
from nominee.lab.jobs.job import Job, Write
from nominee.machinery.runtime.clock import SystemClock
from tests.mutations.launch import BY_NAME, prepare
from tests.mutations.standard import reached
from tests.mutations.standard.commands import Command

SECONDS_BESIDE: Final = 300.0
"""Beyond its own time a command on real processes may take so long: to start them, and to come to rest."""
TIMES_LONGER_MAX: Final = 4
"""So many times its own time, in processor time, a simulated command may take: its last run does not end."""
PROCESSOR_SECONDS_BESIDE: Final = 60
OUTPUT: Final = "output.txt"
_PROGRAM: Final = "nominee.cli"
_ERROR_LENGTH_MAX: Final = 500


class ProcessorClock(SystemClock):
    """A clock that moves with the processor time of this process, and of the children that cases go on in."""

    def monotonic(self) -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        running = sum(map(_processor_seconds, multiprocessing.active_children()))
        return time.process_time() + ended.ru_utime + ended.ru_stime + running


def _processor_seconds(child: BaseProcess) -> float:
    """Return the processor time of a process and of its children that have ended (proc(5), stat)."""
    try:
        stat = Path(f"/proc/{child.pid}/stat").read_text(encoding="ascii")
    except OSError:
        return 0.0
    ticks = stat.rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Task:
    """A command, and the places (`FILE NAME CASE`) that it runs with a mutation; without them all cases."""

    command: Command
    cases: tuple[str, ...] = ()


def job_of(mutation: str, tasks: Sequence[Task]) -> Job:
    """Return the job of commands with a mutation, or without one (""); it ends with the first finding."""
    commands = [each.command for each in tasks]
    are_simulated = all(each.is_simulated for each in commands)
    labels = ", ".join(each.label for each in commands)
    return Job(
        id=f"{mutation} {labels}",
        function="tests.mutations.standard.job:run",
        arguments=(mutation, tuple(tasks)),
        noun=f"{labels} with {mutation or 'no mutation'}",
        seconds_max=None if are_simulated else sum(each.seconds for each in commands) + SECONDS_BESIDE,
        output=OUTPUT,
        own_temporary_files=True,
    )


def run(_directory: Path, write: Write, mutation: str, tasks: Sequence[Task]) -> None:
    """Run the commands in this process until one finds something, and write what each found."""
    if mutation:
        prepare(mutation, _PROGRAM, tasks[0].command.words)
    elif tasks[0].command.is_simulated:
        reached.watch(BY_NAME.values())
        # Cases in forks would leave their marks there.
        vars(started_cluster)["can_fork"] = lambda: False
    cases = _recorded() if not mutation else {}
    for task in tasks:
        clock = _clock(task.command)
        began, runs, found = clock.monotonic(), 0, dict[str, Any]()
        for words in [task.command.narrowed(each) for each in task.cases] or [with_files(task.command.words)]:
            found = read(_output(words))
            runs += found.get("runs", 0)
            if found.get("observation") or found.get("error"):
                break
        for name in reached.take():
            cases.setdefault(name, ["*"])
        if not task.command.has_cases:
            cases.update({name: ["*"] for name in cases})
        seconds = round(clock.monotonic() - began, 1)
        label = task.command.label
        write({**found, "runs": runs, "label": label, "seconds": seconds, "reached": dict(cases)})
        cases.clear()
        if mutation and found.get("observation"):
            return


def with_files(words: Sequence[str]) -> list[str]:
    """Return the words with the files of each pattern, as a shell does."""
    return [name for word in words for name in (sorted(glob(word)) if word.endswith(".yaml") else [word])]


def _clock(command: Command) -> SystemClock:
    """Return the clock of a command; a simulated one gets a limit of processor time."""
    if not command.is_simulated:
        return SystemClock()
    for module in (explorer, clusters, search):
        vars(module)["SystemClock"] = ProcessorClock
    clock = ProcessorClock()
    limit = int(clock.monotonic() + TIMES_LONGER_MAX * command.seconds) + PROCESSOR_SECONDS_BESIDE
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    return clock


def _recorded() -> dict[str, list[str]]:
    """Record from now on which mutations each case of an exploration reaches, as `FILE NAME CASE`.

    The case of the undisturbed run is "".
    """
    cases: dict[str, list[str]] = {}
    simulated = worker.simulated

    def recorded(scenario: Any, case: Any, *rest: Any, **options: Any) -> Any:
        reached.take()
        answer = simulated(scenario, case, *rest, **options)
        for name in reached.take():
            cases.setdefault(name, []).append(f"{scenario.file} {scenario.name} {case}")
        return answer

    worker.simulated = recorded
    return cases


def _output(words: Sequence[str]) -> str:
    sys.argv = [_PROGRAM, *words]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        runpy.run_module(_PROGRAM, run_name="__main__", alter_sys=True)
    return printed.getvalue()


def read(output: str) -> dict[str, Any]:
    """Return observation, case, error and runs of a command's JSON."""
    try:
        document = json.loads(output)
    except ValueError:
        return {"error": f"its output is no JSON: {output[:_ERROR_LENGTH_MAX]!r}"}
    if "runs" in document:
        return _of_random_runs(document["runs"])
    reports = document["explorations"]
    broken = [(report["scenario"], each) for report in reports for each in report["broken"]]
    scenario, first = broken[0] if broken else ("", {"case": "", "observation": ""})
    return {
        "observation": first["observation"],
        "case": first["case"],
        "scenario": scenario,
        "error": next((report["error"] for report in reports if report["error"]), ""),
        "runs": sum(report["runs"] for report in reports),
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
