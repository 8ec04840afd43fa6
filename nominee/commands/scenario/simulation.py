"""The options of `nominee scenario run` that are for simulations: --simulate, --seed, --late-watches, ..."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from nominee.commands.measuring.executors import executor_of, executor_option

if TYPE_CHECKING:
    from nominee.lab.scenario.format.model import Scenario
    from nominee.lab.scenario.play.running import RunSettings
    from nominee.lab.scenario.play.simulation_running import SimulationSettings
    from nominee.lab.scenario.result import ScenarioResult

_SEEDS = re.compile(r"(\d+)-(\d+)")
SEEDS_MAX = 10_000_000
_PROGRESS_EVERY = 10
_IMPOSSIBLE = 2


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """The seeds of --simulate, and where they run: in how many processes, or on a Dask cluster."""

    seeds: range
    jobs: int
    scheduler_address: str = ""
    late_watches: float = 0.0

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
        "--late-watches",
        type=click.FloatRange(0, 1),
        default=0.0,
        metavar="SHARE",
        help="Let this share of the processes' watches be 45 ms behind all the time, as 0.2.",
    )
    @click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=os.cpu_count() or 1,
        show_default="processors",
        help="Processes that simulate different seeds.",
    )
    @executor_option
    @functools.wraps(command)
    def wrapped(
        *,
        simulate: bool,
        seed: int | None,
        seeds: str,
        late_watches: float,
        jobs: int,
        scheduler_address: str,
        **others: object,
    ) -> None:
        if not simulate and (seed is not None or seeds or late_watches):
            raise click.UsageError("--seed, --seeds and --late-watches are for --simulate")
        if seed is not None and seeds:
            raise click.UsageError("give --seed or --seeds, not both")
        if scheduler_address and not seeds:
            raise click.UsageError("--executor is for --simulate --seeds")
        chosen = _seeds(seeds) if seeds else range(seed or 1, (seed or 1) + 1)
        if seed == 0:
            chosen = range(1)
        options = SimulationOptions(chosen, jobs, scheduler_address, late_watches) if simulate else None
        command(simulation=options, **others)

    return wrapped


def _seeds(text: str) -> range:
    """Read `A-B`. Raises: click.UsageError."""
    found = _SEEDS.fullmatch(text)
    if found is None or int(found[2]) < int(found[1]) or int(found[2]) - int(found[1]) >= SEEDS_MAX:
        raise click.UsageError(f"--seeds: {text!r} is not a range A-B of at most {SEEDS_MAX} seeds")
    return range(int(found[1]), int(found[2]) + 1)


def run_simulated(
    scenarios: Sequence[Scenario], options: SimulationOptions, settings: RunSettings
) -> list[ScenarioResult]:
    """Simulate scenarios: with one seed the steps are printed, with several the number of runs.

    The first failure of a scenario is played once more, to print its steps and to keep its log and history.
    """
    # 230 ms that --help and completion would pay.
    from nominee.lab.jobs.job import ExecutorError
    from nominee.lab.scenario.play.simulation_running import SimulationSettings, run_seeds
    from nominee.lab.scenario.result import Outcome

    seeds = SimulationSettings(
        seeds=options.seeds, late_watches=options.late_watches, options=settings.options
    )
    if options.narrates:
        return [_narrated(each, options.seeds[0], seeds, settings) for each in scenarios]
    total = len(options.seeds) * len(scenarios)

    def report(count: int, failed: int) -> None:
        if count % _PROGRESS_EVERY == 0 or count == total:
            end = "\n" if count == total else "\r"
            print(f"{count}/{total} runs, {failed} failed", end=end, file=sys.stderr, flush=True)

    try:
        found = run_seeds(scenarios, seeds, executor_of(options.scheduler_address, options.jobs), report)
    except ExecutorError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(_IMPOSSIBLE)
    results = []
    for scenario, result in zip(scenarios, found, strict=True):
        if result.seed is not None and result.result.outcome is not Outcome.SKIPPED:
            again = _narrated(scenario, result.seed, seeds, settings)
            results.append(replace(again, reason=result.result.reason, seeds=result.result.seeds))
        else:
            results.append(result.result)
    return results


def _narrated(
    scenario: Scenario, seed: int, seeds: SimulationSettings, settings: RunSettings
) -> ScenarioResult:
    # 580 ms that --help and completion would pay.
    from nominee.lab.scenario.clusters import simulated_history
    from nominee.lab.scenario.play.narration import TextNarrator
    from nominee.lab.scenario.play.simulate import simulate
    from nominee.lab.scenario.play.simulation_running import reproduce
    from nominee.simulation.simulation import Simulation

    simulation = Simulation(seed, late_watches=seeds.late_watches, log_level="debug")
    result = simulate(
        scenario,
        seed,
        overrides=settings.options.overrides,
        first=settings.options.first,
        narrate=TextNarrator(simulation.clock, to_stderr=settings.to_stderr),
        simulation=simulation,
    )
    if result.held and not settings.keep:
        return result
    directory = settings.base / scenario.name
    simulated_history.write(simulation, directory)
    return replace(result, reproduce=reproduce(scenario, seed, seeds), directory=str(directory))
