"""Look for a mutation by exploration, and run what found it without the mutation."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nominee.machinery.runtime.clock import SystemClock
from tests.mutations.catalogue import Mutation
from tests.mutations.hunts import HUNTS, SIMULATED_SECONDS_MAX, Hunt
from tests.mutations.launch import ROOT, SELF
from tests.mutations.patch import applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """The first finding of an exploration.

    `case` "" is the undisturbed run, `observation` is "" if nothing broke.
    """

    case: str
    observation: str
    error: str
    runs: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result for one mutation: what found it, and the same cases without it."""

    mutation: Mutation
    hunt: Hunt
    mutated: Exploration
    unmutated: Exploration

    @property
    def problem(self) -> str:
        """Return why the mutation is not found in its budget, or how the program itself fails; else ""."""
        if not self.mutated.observation:
            return (
                f"{self.mutation.name} is not found in {self.mutated.runs} runs {self.mutated.error}".strip()
            )
        if self.mutated.runs > self.hunt.runs_max:
            return (
                f"{self.mutation.name} is found in {self.mutated.runs} runs, more than {self.hunt.runs_max}"
            )
        if self.unmutated.observation or self.unmutated.error:
            return f"without the mutation: {self.unmutated.observation or self.unmutated.error}"
        return ""


def hunt(mutation: Mutation, *, simulate: bool) -> Found:
    """Look for a mutation."""
    hunts = HUNTS[mutation.name]
    chosen = hunts.simulated if simulate else hunts.real
    seconds = SIMULATED_SECONDS_MAX if simulate else hunts.seconds_max
    with tempfile.TemporaryDirectory(prefix="nominee-mutations-") as folder:
        file = chosen.scenario(Path(folder), sys.executable)
        only = [word for pattern in chosen.only for word in ("--only", pattern)]
        drawn = ["--seed", str(chosen.seed)]
        pairs = ["--pairs"] if chosen.pairs else []
        options = [*only, *pairs, *drawn, "--hits", str(chosen.hits), "--stop"]
        explore = _in_simulation if simulate else _on_processes
        mutated = explore(mutation, file, chosen.name, options, seconds)
        options = [*(["--case", mutated.case] if mutated.case else ["--only", "nothing"]), *drawn]
        unmutated = explore(None, file, chosen.name, options, seconds)
    return Found(mutation=mutation, hunt=chosen, mutated=mutated, unmutated=unmutated)


def _arguments(file: Path, name: str, options: list[str], seconds: float) -> list[str]:
    budget = ["--budget", f"{seconds:g}s", "-o", "json"]
    return ["explore", str(file), "--name", name, *budget, *options]


def _on_processes(
    mutation: Mutation | None, file: Path, name: str, options: list[str], seconds: float
) -> Exploration:
    launcher = [SELF, mutation.name, "--"] if mutation is not None else []
    command = [sys.executable, "-m", *launcher, "nominee.cli"]
    began = SystemClock().monotonic()
    ran = subprocess.run(
        [*command, "chaos", *_arguments(file, name, options, seconds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + 300.0,
    )
    return _read(ran.stdout, ran.stderr, SystemClock().monotonic() - began)


def _in_simulation(
    mutation: Mutation | None, file: Path, name: str, options: list[str], seconds: float
) -> Exploration:
    from click.testing import CliRunner

    from nominee.commands.chaos.explore import chaos

    undo = applied(mutation.edits) if mutation is not None else (lambda: None)
    began = SystemClock().monotonic()
    try:
        ran = CliRunner().invoke(chaos, [*_arguments(file, name, options, seconds), "--simulate"])
    finally:
        undo()
    return _read(ran.stdout, ran.stderr + repr(ran.exception), SystemClock().monotonic() - began)


def _read(output: str, errors: str, seconds: float) -> Exploration:
    try:
        (report,) = json.loads(output)["explorations"]
    except ValueError:
        return Exploration(case="", observation="", error=errors[-2000:], runs=0, seconds=seconds)
    first = report["broken"][0] if report["broken"] else {"case": "", "observation": ""}
    return Exploration(
        case=first["case"],
        observation=first["observation"],
        error=report["error"],
        runs=report["runs"],
        seconds=seconds,
    )
