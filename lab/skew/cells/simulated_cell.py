"""A cell that a simulation plays: its files are where those of a cell with real processes are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nominee.lab.scenario.clusters import simulated_history
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.play.narration import TextNarrator
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.scenario.result import ScenarioResult
from nominee.simulation.simulation import Simulation

SEED: Final = 1
"""The default of `nominee scenario run --simulate`, which plays the cell again."""


def play(file: Path, directory: Path) -> ScenarioResult:
    """Simulate the scenario of a file, and write the logs and the history to a directory."""
    (scenario,) = read_file(file)
    simulation = Simulation(SEED, log_level="debug")
    narrate = TextNarrator(simulation.clock, to_stderr=True)
    result = simulate(scenario, SEED, narrate=narrate, simulation=simulation)
    simulated_history.write(simulation, directory)
    (directory / "logs").mkdir()
    (directory / simulated_history.LOG_NAME).rename(directory / "logs" / simulated_history.LOG_NAME)
    return result
