"""Run scenarios in simulations with many seeds, in several processes, and collect the first failures."""

from __future__ import annotations

import gc
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path

from nominee.lab.jobs.job import Ended, Executor, Job, Line, Write
from nominee.lab.scenario.clusters.run_options import RunOptions
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.play.play import ended
from nominee.lab.scenario.result import Measurements, Outcome, ScenarioResult
from nominee.machinery.wire.values.scalars import Json

_SEEDS_PER_JOB = 50
"""On other machines: a worker that dies loses so many at most."""
_REASONS_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """The seeds, the share of watches that are late all the time, and the changes to the scenarios."""

    seeds: range
    late_watches: float = 0.0
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True, slots=True)
class SeedsResult:
    """The result of a scenario over all seeds; `seed` is that of the first failure, None without one.

    `reasons` has the seeds that failed, at most _REASONS_MAX of them, of `count` runs.
    """

    result: ScenarioResult
    seed: int | None = None
    reasons: Mapping[int, str] = field(default_factory=dict)
    count: int = 0


@dataclass(slots=True)
class _Tally:
    """The runs of one scenario: checks, simulated seconds, measured values, failure of the lowest seed."""

    scenario: Scenario
    count: int = 0
    failed: int = 0
    checks: int = 0
    seconds: float = 0.0
    measurements: dict[int, list[Json]] = field(default_factory=dict)
    seed: int = -1
    first: ScenarioResult | None = None
    reasons: dict[int, str] = field(default_factory=dict)
    skipped: ScenarioResult | None = None

    def add(self, run: Mapping[str, Json]) -> None:
        """Add a run as `simulate_seeds` writes it; it has the whole result if it did not hold."""
        seed, outcome = run["seed"], Outcome(run["outcome"])
        result = ScenarioResult.from_json(run["result"]) if "result" in run else None
        self.count += 1
        self.checks += run["checks"]
        self.seconds += run["seconds"]
        self.measurements[seed] = run["measurements"]
        if outcome is Outcome.SKIPPED:
            self.skipped = result
        elif outcome is not Outcome.PASSED:
            self.failed += 1
            if result is not None and len(self.reasons) < _REASONS_MAX:
                self.reasons[seed] = result.reason
            if self.first is None or seed < self.seed:
                self.seed, self.first = seed, result

    def result(self, settings: SimulationSettings, problem: str) -> SeedsResult:
        """Return the result of the scenario: that of the first failure, if there is one."""
        if self.skipped is not None:
            return SeedsResult(self.skipped)
        held = f"{self.count - self.failed} of {self.count} seeds held"
        if self.first is not None:
            first = replace(self.first, reason=f"seed {self.seed}: {self.first.reason}", seeds=held)
            return SeedsResult(first, self.seed, dict(sorted(self.reasons.items())), self.count)
        if self.count < len(settings.seeds):
            reason = f"{self.count} of {len(settings.seeds)} seeds were run: {problem}"
            return SeedsResult(ended(self.scenario, Outcome.ERROR, reason), count=self.count)
        passed = ended(self.scenario, Outcome.PASSED, f"{self.count} seeds")
        measured = [
            Measurements(variant={"seed": seed, **each["variant"]}, values=each["values"])
            for seed in sorted(self.measurements)
            for each in self.measurements[seed]
        ]
        whole = replace(
            passed, checks=self.checks, seconds=self.seconds, measurements=tuple(measured), seeds=held
        )
        return SeedsResult(whole, count=self.count)


def reproduce(scenario: Scenario, seed: int, settings: SimulationSettings) -> str:
    """Return the command that repeats a run."""
    words = ["nominee", "scenario", "run", "--simulate", "--seed", str(seed), scenario.file]
    late = ["--late-watches", f"{settings.late_watches:g}"] if settings.late_watches else []
    return shlex.join([*words, "--name", scenario.name, *late, *settings.options.words()])


def run_seeds(
    scenarios: Sequence[Scenario],
    settings: SimulationSettings,
    executor: Executor,
    report: Callable[[int, int], None],
) -> list[SeedsResult]:
    """Run each scenario with all seeds; `report` gets the number of runs so far, and of failures."""
    tallies = {scenario.name: _Tally(scenario) for scenario in scenarios}
    problem = ""
    with closing(executor.run(_jobs(scenarios, settings, executor))) as reports:
        for each in reports:
            if isinstance(each, Line):
                tallies[each.value["scenario"]].add(each.value)
                every = tallies.values()
                report(sum(tally.count for tally in every), sum(tally.failed for tally in every))
            elif isinstance(each, Ended):
                problem = problem or each.problem
    return [tally.result(settings, problem) for tally in tallies.values()]


def _jobs(scenarios: Sequence[Scenario], settings: SimulationSettings, executor: Executor) -> Iterator[Job]:
    """Yield jobs with every n-th seed each: on this machine as many as run at a time."""
    seeds = settings.seeds
    count = min(executor.width, len(seeds)) if executor.is_local else ceil(len(seeds) / _SEEDS_PER_JOB)
    for first in range(count):
        yield Job(
            id=f"seeds-from-{seeds[first]}",
            function="nominee.lab.scenario.play.simulation_running:simulate_seeds",
            arguments=(scenarios, seeds[first::count], settings),
            noun="simulation",
            stop_seconds_max=0.0,
            own_temporary_files=True,
        )


def simulate_seeds(
    _directory: Path,
    write: Write,
    scenarios: Sequence[Scenario],
    seeds: Sequence[int],
    settings: SimulationSettings,
) -> None:
    """Play the scenarios with each seed (a job).

    Write of each run scenario, seed, outcome, seconds (simulated), the number of checks, measured values,
    and the whole result if it did not hold.
    """
    # They import the components.
    from nominee.lab.scenario.play.simulate import simulate
    from nominee.simulation.simulation import Simulation

    options = settings.options
    gc.disable()  # `between_runs` collects
    for seed in seeds:
        for scenario in scenarios:
            result = simulate(
                scenario,
                seed,
                overrides=options.overrides,
                first=options.first,
                simulation=Simulation(seed, late_watches=settings.late_watches),
            )
            between_runs()
            whole = {} if result.held and not result.reason else {"result": result.as_json()}
            write(
                {
                    "scenario": result.scenario,
                    "seed": seed,
                    "outcome": result.outcome.value,
                    "seconds": result.seconds,
                    "checks": result.checks,
                    "measurements": [each.as_json() for each in result.measurements],
                    **whole,
                }
            )


def between_runs() -> None:
    """Free the remains of a simulation; later collections skip the modules that it has loaded."""
    gc.collect()
    gc.freeze()
