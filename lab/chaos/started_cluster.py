"""A simulated cluster that has started once, for many cases: each goes on in a fork of its process.

A case disturbs nothing before its cluster has started, so that the cases of a seed have the same start. The
histories are those of simulations of their own, byte for byte.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from nominee.lab.chaos.disturbed_run import run_case
from nominee.lab.chaos.messages import CaseAnswer, CaseRequest
from nominee.lab.chaos.outcomes import branches
from nominee.lab.chaos.worker import keep_unless_held, narrator, redraw_network
from nominee.lab.scenario.clusters.simulated_cluster import SimulatedCluster
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.play.simulate import with_cluster
from nominee.lab.scenario.play.simulation_running import between_runs
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.process.parent_death import die_with_parent
from nominee.machinery.process.signals import termination_signals
from nominee.simulation.simulation import Simulation

_THREADS = Path("/proc/self/task")
CASE_SECONDS_MAX = 600.0
"""Cases take about a second; a component that calls itself for ever never gives the loop a turn."""


def can_fork() -> bool:
    """Return whether this process has one thread: then it does not use gRPC, whose threads a fork loses."""
    return _THREADS.is_dir() and len(os.listdir(_THREADS)) == 1


class StartedCluster:
    """A process in which the cluster of a scenario has started, with one seed. Call `close` at the end."""

    def __init__(self, scenario: Scenario, seed: int, *, verbose: bool) -> None:
        assert can_fork()
        between_runs()
        context = multiprocessing.get_context("fork")
        self._seed = seed
        self._connection, theirs = context.Pipe()
        arguments = (os.getpid(), theirs, scenario, seed, verbose)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def serves(self, seed: int) -> bool:
        """Return whether it runs, with this seed."""
        return seed == self._seed and self._process.is_alive()

    def run(self, request: CaseRequest, directory: Path) -> CaseAnswer:
        """Run a case; leave history and log in the directory unless all held.

        One that does not end in CASE_SECONDS_MAX is an error, and ends the process.
        """
        try:
            self._connection.send((request, directory))
            if not self._connection.poll(CASE_SECONDS_MAX):
                self._process.kill()
                return CaseAnswer(error=f"the simulation does not end within {CASE_SECONDS_MAX:g} s")
            answer: CaseAnswer = self._connection.recv()
        except (EOFError, OSError):
            return CaseAnswer(error="the process of the simulation has ended")
        return answer

    def close(self) -> None:
        """End the process, and with it a case that runs."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _serve(parent: int, connection: Connection, scenario: Scenario, seed: int, verbose: bool) -> None:
    """Start a cluster, and answer requests, each in a child."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    for number in termination_signals():
        signal.signal(number, signal.SIG_DFL)
    simulation = Simulation(seed, log_level="info")

    async def play(cluster: SimulatedCluster) -> tuple[CaseAnswer, Path]:
        request, directory = _next_of_child(connection, simulation)
        branches.clear()
        narrate = narrator(simulation, verbose=verbose)
        redraw_network(simulation, request.case)
        played = request.scenario_of(scenario)
        ran = await run_case(played, request.case, cluster, narrate, request.undisturbed, clean_up=False)
        answer = CaseAnswer.of(ran)
        if answer.all_held:
            # Without the end of the tasks: nothing of this process is looked at any more.
            connection.send(answer)
            os._exit(os.EX_OK)
        return answer, directory

    try:
        answer, directory = with_cluster(scenario.cluster, simulation, play)
        keep_unless_held(answer, simulation, directory)
    except ClusterError as error:
        answer = CaseAnswer(error=str(error))
    connection.send(answer)


def _next_of_child(connection: Connection, simulation: Simulation) -> tuple[CaseRequest, Path]:
    """Return the next request to a child of this process, for each of them; the process itself stays here."""
    while True:
        request, directory = connection.recv()
        this = os.getpid()
        child = simulation.loop.fork()
        if child == 0:
            die_with_parent(this)
            return request, directory
        _, status = os.waitpid(child, 0)
        if status:
            code = os.waitstatus_to_exitcode(status)
            connection.send(CaseAnswer(error=f"the process of the case ended with exit code {code}"))
