"""The jobs of an exploration: run cases on one cluster, or one case in a simulation."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Ran, Undisturbed
from nominee.lab.chaos.messages import CaseAnswer, CaseRequest
from nominee.lab.chaos.outcomes import branches
from nominee.lab.jobs.job import Write
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.play.narration import Narrator, Silent, TextNarrator
from nominee.lab.scenario.play.play import NotStartedError, started
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import SystemClock

if TYPE_CHECKING:
    from nominee.lab.scenario.clusters.simulated_cluster import SimulatedCluster
    from nominee.simulation.simulation import Simulation

CLUSTER = "c"


def serve(
    work: Path,
    write: Write,
    scenario: Scenario,
    directory: Path | None,
    requests: Sequence[CaseRequest],
    verbose: bool,
) -> None:
    """Start a cluster in a directory (None: the job's), and answer requests, then those of standard input.

    It ends with the input, or after a case that leaves the cluster unusable. A process of its own for each
    cluster: it starts processes, which a process that has used gRPC must not do.
    """
    place = directory or work / CLUSTER
    narrate: Narrator = TextNarrator(SystemClock(), to_stderr=True) if verbose else Silent()

    async def answer_all() -> None:
        # These import gRPC; the cluster is started before.
        from nominee.lab.chaos.disturbed_run import run_case
        from nominee.lab.scenario.clusters.real_cluster import RealCluster

        remaining = _requests(requests)
        async with RealCluster.open(place, scenario.cluster) as cluster:
            write(CaseAnswer(ready=True).as_json())
            while request := await anyio.to_thread.run_sync(next, remaining, None):
                played = request.scenario_of(scenario)
                ran = await run_case(played, request.case, cluster, narrate, request.undisturbed)
                write(CaseAnswer.of(ran).as_json())
                if not ran.is_clean:
                    return

    try:
        with logs.written_to(place / "logs" / "worker.log", "chaos"), started(scenario.cluster, place):
            anyio.run(answer_all, backend_options={"use_uvloop": True})
    except (NotStartedError, ClusterError) as error:
        write(CaseAnswer(error=f"the cluster did not start: {error}").as_json())


def _requests(first: Sequence[CaseRequest]) -> Iterator[CaseRequest]:
    yield from first
    yield from map(CaseRequest.from_json, sys.stdin)


def simulate(work: Path, write: Write, scenario: Scenario, request: CaseRequest, seed: int) -> None:
    """Run a case in a simulation, as a job; leave history and log in the job's directory unless all held."""
    write(in_simulation(scenario, request, seed, work / CLUSTER, verbose=False).as_json())


def in_simulation(
    scenario: Scenario, request: CaseRequest, seed: int, directory: Path, *, verbose: bool
) -> CaseAnswer:
    """Run a case in a simulation; leave history and log in the directory unless all held."""
    from nominee.simulation.simulation import Simulation  # it imports the components

    branches.clear()
    simulation = Simulation(seed, log_level="info")
    played = request.scenario_of(scenario)
    answer = simulated(played, request.case, request.undisturbed, simulation, verbose=verbose)
    keep_unless_held(answer, simulation, directory)
    return answer


def keep_unless_held(answer: CaseAnswer, simulation: Simulation, directory: Path) -> None:
    """Write history and log of a simulation into a directory unless all held."""
    from nominee.lab.scenario.clusters import simulated_history  # it imports the components

    if not answer.all_held:
        simulated_history.write(simulation, directory)


def simulated(
    scenario: Scenario, case: Case, undisturbed: Undisturbed, simulation: Simulation, *, verbose: bool
) -> CaseAnswer:
    """Run a case in a simulation."""
    # These import the components.
    from nominee.lab.chaos.disturbed_run import run_case
    from nominee.lab.chaos.perturbing import first_start
    from nominee.lab.scenario.play.simulate import with_cluster

    narrate = narrator(simulation, verbose=verbose)

    async def play(cluster: SimulatedCluster) -> Ran:
        redraw_network(simulation, case)
        return await run_case(scenario, case, cluster, narrate, undisturbed, clean_up=False)

    try:
        options = first_start(scenario.cluster, case, undisturbed.launches)
        return CaseAnswer.of(with_cluster(options, simulation, play))
    except ClusterError as error:
        return CaseAnswer(error=str(error))


def redraw_network(simulation: Simulation, case: Case) -> None:
    """Let the case of a cluster that has started go on with a network of its own.

    Which messages meet, and how late they may be, is part of what a disturbance shows. The undisturbed run
    keeps the network of the seed.
    """
    if case.perturbations:
        simulation.redraw_network(str(case))


def narrator(simulation: Simulation, *, verbose: bool) -> Narrator:
    """Return the narrator of a case in a simulation."""
    return TextNarrator(simulation.clock, to_stderr=True) if verbose else Silent()
