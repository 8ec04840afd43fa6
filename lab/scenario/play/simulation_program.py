"""`python -m nominee.lab.scenario.play.simulation_program PLAN`: simulate scenarios with many seeds.

Prints one line of JSON for each run: scenario, seed, outcome, seconds (simulated), the number of checks, and
the whole result if it did not hold.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from nominee.lab.scenario.clusters.simulation_plan import SimulationPlan
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.scenario.result import ScenarioResult
from nominee.localcluster.output import INTERRUPTED
from nominee.machinery.wire.scalars import Json


def runs(plan: SimulationPlan) -> Iterator[tuple[int, ScenarioResult]]:
    """Play the scenarios; yield seed and result of each run."""
    options = plan.options
    scenarios = [_find(Path(file), name) for file, name in plan.scenarios]
    for seed in plan.seeds:
        for scenario in scenarios:
            yield seed, simulate(scenario, seed, overrides=options.overrides, first=options.first)
            between_runs()


def between_runs() -> None:
    """Free what a simulation has left; what it has loaded is not looked at again by later collections."""
    gc.collect()
    gc.freeze()


def _find(file: Path, name: str) -> Scenario:
    return next(scenario for scenario in read_file(file) if scenario.name == name)


def main(text: str) -> int:
    """Run a plan; return 0 if everything held, else 1."""
    held = True
    gc.disable()  # `between_runs` collects
    for seed, result in runs(SimulationPlan.from_json(text)):
        line: dict[str, Json] = {
            "scenario": result.scenario,
            "seed": seed,
            "outcome": result.outcome.value,
            "seconds": result.seconds,
            "checks": result.checks,
        }
        if not result.held or result.reason:
            line["result"] = result.as_json()
        held = held and result.held
        print(json.dumps(line), flush=True)
    return 0 if held else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
