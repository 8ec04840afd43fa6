"""Scenarios in simulations with many seeds, from a test: `simulate("my.yaml", seeds=range(100))`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from pathlib import Path

from nominee.lab.jobs.local import LocalExecutor
from nominee.lab.scenario.clusters.run_options import RunOptions
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file, read_text
from nominee.lab.scenario.play.simulation_running import SimulationSettings, reproduce, run_seeds
from nominee.lab.scenario.result import ScenarioResult
from nominee.testing.up_words import check_settings


@dataclass(frozen=True, slots=True)
class BrokenSeed:
    """A seed with which the scenario does not hold: the reason, and the command that repeats the run.

    The command is "" for a scenario that is in no file.
    """

    seed: int
    message: str
    command: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.message}" + (f"\n    {self.command}" if self.command else "")


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult:
    """The result of a scenario over its seeds: `assert result.held, str(result)`.

    `broken` are the seeds that failed, the lowest first (at most 1,000). `result` is that of the first one
    with its steps, or of all runs with their measured values.
    """

    scenario: str
    runs: int
    broken: tuple[BrokenSeed, ...]
    result: ScenarioResult

    @property
    def held(self) -> bool:
        """Return whether the scenario held with every seed; a skipped one did not fail."""
        return self.result.held

    def __str__(self) -> str:
        if not self.broken:
            return f"{self.scenario}: {self.result.outcome.value}: {self.result.reason}"
        head = f"{self.scenario}: {self.runs - len(self.broken)} of {self.runs} seeds held"
        return "\n".join([head, *map(str, self.broken)])

    __repr__ = __str__


def simulate(
    scenario: Scenario | Path | str,
    seeds: range = range(100),
    *,
    name: str = "",
    emulated_version: str | Mapping[str, str] = "",
    feature_gates: Mapping[str, Mapping[str, bool]] | None = None,
    jobs: int = 0,
) -> SimulationResult:
    """Play a scenario in a simulation of each seed, in child processes; return its result.

    Args:
        scenario: a file, or a text of several lines.
        seeds: the seeds.
        name: which scenario of the file, if it has several.
        emulated_version: of all components, or by component.
        feature_gates: true or false by component and gate; the component "" is all of them.
        jobs: how many processes; 0 is the number of processors.

    Raises:
        InvalidScenarioError: the scenario has mistakes.
        ValueError: there is no such scenario, or no seed.
    """
    check_settings(emulated_version, feature_gates or {})
    given: object = seeds
    if not isinstance(given, Sized):
        raise TypeError(f"seeds are a range, as range(100); not {seeds!r}")
    if not len(seeds):
        raise ValueError("there are no seeds")
    chosen = scenario if isinstance(scenario, Scenario) else _read(scenario, name)
    versions = {"": emulated_version} if isinstance(emulated_version, str) else emulated_version
    options = RunOptions(
        versions={component: version for component, version in versions.items() if version},
        gates=dict(feature_gates or {}),
    )
    settings = SimulationSettings(seeds=seeds, options=options)
    executor = LocalExecutor(jobs or os.cpu_count() or 1)
    (found,) = run_seeds([chosen], settings, executor, lambda count, failed: None)
    is_in_file = Path(chosen.file).is_file()
    broken = tuple(
        BrokenSeed(seed, reason, reproduce(chosen, seed, settings) if is_in_file else "")
        for seed, reason in found.reasons.items()
    )
    return SimulationResult(chosen.name, found.count, broken, found.result)


def _read(given: Path | str, name: str) -> Scenario:
    if isinstance(given, str) and "\n" in given:
        scenarios = read_text(given, "text")
    else:
        scenarios = read_file(Path(given))
    by_name = {each.name: each for each in scenarios}
    if name in by_name or (not name and len(by_name) == 1):
        return by_name[name or next(iter(by_name))]
    raise ValueError(f"name one of the scenarios {', '.join(by_name)}" + (f", not {name}" if name else ""))
