"""Simulate scenarios with many seeds, in a process of their own (a job)."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

from nominee.lab.jobs.job import Write
from nominee.lab.scenario.clusters.run_options import RunOptions
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.play.simulate import simulate


def simulate_seeds(
    _directory: Path, write: Write, scenarios: Sequence[Scenario], seeds: Sequence[int], options: RunOptions
) -> None:
    """Play the scenarios with each seed.

    Write of each run scenario, seed, outcome, seconds (simulated), the number of checks, and the whole result
    if it did not hold.
    """
    gc.disable()  # `between_runs` collects
    for seed in seeds:
        for scenario in scenarios:
            result = simulate(scenario, seed, overrides=options.overrides, first=options.first)
            between_runs()
            whole = {} if result.held and not result.reason else {"result": result.as_json()}
            write(
                {
                    "scenario": result.scenario,
                    "seed": seed,
                    "outcome": result.outcome.value,
                    "seconds": result.seconds,
                    "checks": result.checks,
                    **whole,
                }
            )


def between_runs() -> None:
    """Free what a simulation has left; what it has loaded is not looked at again by later collections."""
    gc.collect()
    gc.freeze()
