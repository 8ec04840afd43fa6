"""Run scenarios in simulations with many seeds, in several processes, and collect the first failures."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from nominee.lab.scenario.clusters.run_options import RunOptions
from nominee.lab.scenario.clusters.simulation_plan import SimulationPlan
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.play.play import ended
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.localcluster.ending import kill
from nominee.localcluster.supervisor.children import before_exec


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """The seeds, the number of processes, and what is changed in the scenarios."""

    seeds: range
    jobs: int = 1
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True, slots=True)
class SeedsResult:
    """The result of a scenario over all seeds; `seed` is that of the first failure, None without one."""

    result: ScenarioResult
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    """One run, as a simulating process prints it; `result` is there if it did not hold."""

    scenario: str
    seed: int
    outcome: Outcome
    seconds: float
    checks: int
    result: ScenarioResult | None

    @classmethod
    def parse(cls, text: str) -> _Line:
        document = json.loads(text)
        found = document.get("result")
        return cls(
            document["scenario"],
            document["seed"],
            Outcome(document["outcome"]),
            document["seconds"],
            document["checks"],
            ScenarioResult.from_json(found) if found is not None else None,
        )


@dataclass(slots=True)
class _Tally:
    """The runs of one scenario, their checks and simulated seconds, and the failure with the lowest seed."""

    scenario: Scenario
    count: int = 0
    failed: int = 0
    checks: int = 0
    seconds: float = 0.0
    seed: int = -1
    first: ScenarioResult | None = None
    skipped: ScenarioResult | None = None

    def add(self, run: _Line) -> None:
        seed, outcome, result = run.seed, run.outcome, run.result
        self.count += 1
        self.checks += run.checks
        self.seconds += run.seconds
        if outcome is Outcome.SKIPPED:
            self.skipped = result
        elif outcome is not Outcome.PASSED:
            self.failed += 1
            if self.first is None or seed < self.seed:
                self.seed, self.first = seed, result

    def result(self, settings: SimulationSettings) -> SeedsResult:
        """Return the result of the scenario: that of the first failure, if there is one."""
        if self.skipped is not None:
            return SeedsResult(self.skipped)
        if self.first is not None:
            share = f"seed {self.seed} ({self.failed} of {self.count} seeds failed)"
            return SeedsResult(replace(self.first, reason=f"{share}: {self.first.reason}"), self.seed)
        if self.count < len(settings.seeds):
            reason = f"{self.count} of {len(settings.seeds)} seeds were run"
            return SeedsResult(ended(self.scenario, Outcome.ERROR, reason))
        passed = ended(self.scenario, Outcome.PASSED, f"{self.count} seeds")
        return SeedsResult(replace(passed, checks=self.checks, seconds=self.seconds))


def reproduce(scenario: Scenario, seed: int, settings: SimulationSettings) -> str:
    """Return the command that repeats a run."""
    words = ["nominee", "scenario", "run", "--simulate", "--seed", str(seed), scenario.file]
    return shlex.join([*words, "--name", scenario.name, *settings.options.words()])


def run_seeds(
    scenarios: Sequence[Scenario], settings: SimulationSettings, report: Callable[[int, int], None]
) -> list[SeedsResult]:
    """Run each scenario with all seeds; `report` gets the number of runs so far, and of failures."""
    tallies = {scenario.name: _Tally(scenario) for scenario in scenarios}
    lock = Lock()

    def collect(child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            run = _Line.parse(line)
            with lock:
                tallies[run.scenario].add(run)
                every = tallies.values()
                report(sum(tally.count for tally in every), sum(tally.failed for tally in every))

    # A child that is killed removes nothing: its temporary files are removed here.
    with TemporaryDirectory(prefix="nominee-simulations-") as folder:
        _collect_all(scenarios, settings, Path(folder), collect)
    return [tally.result(settings) for tally in tallies.values()]


def _collect_all(
    scenarios: Sequence[Scenario],
    settings: SimulationSettings,
    folder: Path,
    collect: Callable[[subprocess.Popen[str]], None],
) -> None:
    """Start the processes and collect their results; no process is left, whatever happens."""
    children: list[subprocess.Popen[str]] = []
    try:
        # All children before the first thread: a process with threads does not fork safely.
        jobs = max(min(settings.jobs, len(settings.seeds)), 1)
        children.extend(_child(scenarios, settings, folder, index, jobs) for index in range(jobs))
        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(collect, children))
            finally:  # before the pool waits for its threads, which read until the children end
                for child in children:
                    child.kill()
    finally:
        for child in children:
            kill(child)


def _child(
    scenarios: Sequence[Scenario], settings: SimulationSettings, folder: Path, index: int, jobs: int
) -> subprocess.Popen[str]:
    """Start a process for every `jobs`-th seed from the one at `index` on."""
    plan = SimulationPlan(
        scenarios=[(scenario.file, scenario.name) for scenario in scenarios],
        first=settings.seeds[index],
        last=settings.seeds[-1],
        step=jobs,
        options=settings.options,
    )
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "nominee.lab.scenario.play.simulation_program", plan.to_json()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
        process_group=0,
        preexec_fn=before_exec(),
    )
