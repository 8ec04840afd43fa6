"""The options --simulate, --seed, --seeds and --jobs of `nominee scenario run`."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nominee.scenario.model import Scenario
    from nominee.scenario.result import ScenarioResult
    from nominee.scenario.simulation_running import SimulationSettings

_SEEDS = re.compile(r"(\d+)-(\d+)")
SEEDS_MAX = 10_000_000
_PROGRESS_EVERY = 10


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """The seeds of --simulate, and how many processes run them."""

    seeds: range
    jobs: int

    @property
    def narrates(self) -> bool:
        """Whether the steps are printed: with one seed."""
        return len(self.seeds) == 1


def simulation_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command gets `simulation`, None without --simulate."""

    @click.option(
        "--simulate",
        is_flag=True,
        help="Run in one process, on a simulated clock and network (docs/simulation.md).",
    )
    @click.option("--seed", type=click.IntRange(min=0), default=None, help="Seed of the simulation; 1.")
    @click.option("--seeds", default="", metavar="A-B", help="Run with each of these seeds.")
    @click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=os.cpu_count() or 1,
        show_default="processors",
        help="Processes that simulate different seeds.",
    )
    @functools.wraps(command)
    def wrapped(*, simulate: bool, seed: int | None, seeds: str, jobs: int, **others: object) -> None:
        if not simulate and (seed is not None or seeds):
            raise click.UsageError("--seed and --seeds are for --simulate")
        if seed is not None and seeds:
            raise click.UsageError("give --seed or --seeds, not both")
        chosen = _seeds(seeds) if seeds else range(seed or 1, (seed or 1) + 1)
        if seed == 0:
            chosen = range(1)
        command(simulation=SimulationOptions(chosen, jobs) if simulate else None, **others)

    return wrapped


def _seeds(text: str) -> range:
    """Read `A-B`. Raises: click.UsageError."""
    found = _SEEDS.fullmatch(text)
    if found is None or int(found[2]) < int(found[1]) or int(found[2]) - int(found[1]) >= SEEDS_MAX:
        raise click.UsageError(f"--seeds: {text!r} is not a range A-B of at most {SEEDS_MAX} seeds")
    return range(int(found[1]), int(found[2]) + 1)


def run_simulated(
    scenarios: Sequence[Scenario],
    options: SimulationOptions,
    versions: Mapping[str, str],
    gates: Mapping[str, Mapping[str, bool]],
    *,
    to_stderr: bool,
) -> list[ScenarioResult]:
    """Simulate scenarios: with one seed the steps are printed, with several the number of runs."""
    from nominee.scenario.simulation_running import SimulationSettings, run_seeds

    settings = SimulationSettings(seeds=options.seeds, jobs=options.jobs, versions=versions, gates=gates)
    if options.narrates:
        return [_narrated(scenario, settings, to_stderr=to_stderr) for scenario in scenarios]
    total = len(options.seeds) * len(scenarios)

    def report(count: int, failed: int) -> None:
        if count % _PROGRESS_EVERY == 0 or count == total:
            end = "\n" if count == total else "\r"
            print(f"{count}/{total} runs, {failed} failed", end=end, file=sys.stderr, flush=True)

    return run_seeds(scenarios, settings, report)


def _narrated(scenario: Scenario, settings: SimulationSettings, *, to_stderr: bool) -> ScenarioResult:
    from nominee.scenario.model import ClusterOverrides
    from nominee.scenario.narration import TextNarrator
    from nominee.scenario.simulate import simulate
    from nominee.scenario.simulation_running import reproduce
    from simulation.simulation import Simulation

    (seed,) = settings.seeds
    simulation = Simulation(seed)
    result = simulate(
        scenario,
        seed,
        overrides=ClusterOverrides(emulated_versions=settings.versions, feature_gates=settings.gates),
        narrate=TextNarrator(simulation.clock, to_stderr=to_stderr),
        simulation=simulation,
    )
    return replace(result, reproduce="" if result.held else reproduce(scenario, seed, settings))
