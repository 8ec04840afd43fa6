"""A cell that a simulation plays: its result and files are where those of a cell with real processes are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from nominee.lab.scenario.clusters import simulated_history
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.play.narration import TextNarrator
from nominee.lab.scenario.play.program import Plan
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.skew.cell_run import LOGS
from nominee.simulation.simulation import Simulation

SEED: Final = 1
"""The default of `nominee scenario run --simulate`, which plays the cell again."""


def main(text: str) -> int:
    """Simulate the scenario of a plan; return 0 if everything held, else 1."""
    plan = Plan.from_json(text)
    ((file, name),) = plan.scenarios
    scenario = next(each for each in read_file(Path(file)) if each.name == name)
    simulation = Simulation(SEED, log_level="info")
    narrate = TextNarrator(simulation.clock, to_stderr=plan.to_stderr)
    result = simulate(scenario, SEED, narrate=narrate, simulation=simulation)
    directory = Path(plan.directory)
    simulated_history.write(simulation, directory)
    (directory / LOGS).mkdir()
    (directory / simulated_history.LOG_NAME).rename(directory / LOGS / simulated_history.LOG_NAME)
    Path(plan.results).write_text(json.dumps([result.as_json()]), encoding="utf-8")
    return 0 if result.held else 1
