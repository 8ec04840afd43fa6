"""Play a scenario in a simulation, with a seed."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio

from nominee.lab.scenario.acting.base import Action
from nominee.lab.scenario.clusters.running_check import RunningCheck
from nominee.lab.scenario.clusters.simulated_cluster import SimulatedCluster
from nominee.lab.scenario.clusters.simulated_processes import SimulatedProcesses
from nominee.lab.scenario.fields.options import ClusterOptions, ClusterOverrides
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.up_options import documents, write
from nominee.lab.scenario.play import runner
from nominee.lab.scenario.play.narration import Narrator, Silent
from nominee.lab.scenario.play.play import ended
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.localcluster import plan
from nominee.localcluster.cluster import ClusterError
from nominee.localcluster.plan import UpOptions
from nominee.localcluster.supervisor.model.spec import ClusterSpec
from nominee.localcluster.up_options.config_file import read_config
from nominee.localcluster.up_options.options import OptionError
from nominee.simulation.event_loop.loop import SimulationError
from nominee.simulation.simulation import DIRECTORY, Simulation

T = TypeVar("T")


def simulate(
    scenario: Scenario,
    seed: int,
    *,
    overrides: ClusterOverrides | None = None,
    narrate: Narrator | None = None,
    first: Sequence[Action] = (),
    simulation: Simulation | None = None,
) -> ScenarioResult:
    """Play a scenario in a simulation of this seed; return its result.

    `overrides` change the cluster, `first` are actions before the first step. With `simulation` the caller
    has the history and the log lines afterwards.
    """
    options = (overrides or ClusterOverrides()).applied_to(scenario.cluster)
    if reason := options.not_simulated:
        return ended(scenario, Outcome.SKIPPED, reason)

    async def play(cluster: SimulatedCluster) -> ScenarioResult:
        return await runner.run(
            scenario,
            cluster,
            narrate or Silent(),
            first=first,
        )

    try:
        return with_cluster(options, simulation or Simulation(seed), play)
    except ClusterError as error:
        return ended(scenario, Outcome.ERROR, str(error))


def with_cluster(
    options: ClusterOptions, simulated: Simulation, use: Callable[[SimulatedCluster], Awaitable[T]]
) -> T:
    """Start a cluster in a simulation, and return the result of a program that uses it.

    Raises:
        ClusterError: it cannot be simulated, does not start, or nothing can happen any more.
    """
    if options.not_simulated:
        raise ClusterError(options.not_simulated)
    try:
        spec, stopped = _spec(options)

        async def main() -> T:
            # From the first call on: the watches of the components begin with their start.
            check = RunningCheck(simulated.store, simulated.network)
            processes = SimulatedProcesses(simulated, spec, {})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(processes.run)
                processes.start_all(without=stopped)
                await processes.until_all_ready()
                async with await simulated.client("nominee-scenario") as client:
                    result = await use(SimulatedCluster(simulated, processes, client, options, check))
                tasks.cancel_scope.cancel()
            return result

        return simulated.run(main)
    except (BaseExceptionGroup, SimulationError, OptionError) as error:
        found = _leaves(error)
        if not all(isinstance(each, ClusterError | SimulationError | OptionError) for each in found):
            raise
        raise ClusterError("; ".join(map(str, found))) from None


_specs: dict[str, tuple[ClusterSpec, frozenset[str]]] = {}
"""By the documents of a cluster. The same command lines in each run: they are parsed once."""


def _spec(options: ClusterOptions) -> tuple[ClusterSpec, frozenset[str]]:
    """Return the processes of a cluster, and those that do not start with it.

    Their files exist as long as this process: components read them whenever they start.

    Raises:
        OptionError: options contradict one another.
    """
    text = json.dumps(documents(options))
    if text not in _specs:
        folder = Path(tempfile.mkdtemp(prefix="nominee-simulation-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        settings = read_config(write(options, folder))
        settings.update(secure=False)
        spec = plan.build(UpOptions(directory=DIRECTORY, **settings)).spec
        _specs[text] = spec, frozenset(p.name for p in spec.processes if not p.starts_with_cluster)
    return _specs[text]


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for each in error.exceptions for leaf in _leaves(each)]
