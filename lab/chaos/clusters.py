"""Where the cases of an exploration run: on clusters of real processes, or in simulations."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Protocol

from nominee.lab.chaos.case import Case
from nominee.lab.chaos.messages import Answer, Plan, Request
from nominee.lab.chaos.observations import Ran, Undisturbed
from nominee.lab.chaos.workers import Worker, WorkerError
from nominee.lab.scenario.format.model import Scenario

START_SECONDS_MAX = 120.0
CASES_PER_CLUSTER_MAX = 40
"""A history grows, and its check with it."""


class Clusters(Protocol):
    """Clusters of one scenario, one after another. `count` is how many were started."""

    count: int

    def run(self, case: Case, undisturbed: Undisturbed, seed: int) -> Answer:
        """Run a case.

        Raises:
            WorkerError: it could not be run.
        """
        ...

    def keep(self) -> str:
        """Stop the cluster of the last case, and return the directory in which its files are kept."""
        ...

    def close(self) -> None:
        """Stop the cluster."""
        ...


class RealClusters:
    """Clusters of real processes, each with a worker; one is used again as long as its cases are clean."""

    def __init__(
        self, scenario: Scenario, base: Path, *, keep_all: bool = False, verbose: bool = False
    ) -> None:
        self._scenario, self._base = scenario, base
        self._keep_all, self._verbose = keep_all, verbose
        self._worker: Worker | None = None
        self._cases = 0
        self.count = 0

    def run(self, case: Case, undisturbed: Undisturbed, seed: int) -> Answer:
        """Run a case; real processes do not use the seed."""
        worker = self._worker
        if worker is None or not worker.is_usable or self._cases >= CASES_PER_CLUSTER_MAX:
            self.close()
            worker = self._start()
        self._cases += 1
        request = Request(case=case, undisturbed=undisturbed)
        return worker.run(request, self._scenario.timeout_seconds * 3 + START_SECONDS_MAX)

    def _start(self) -> Worker:
        """Start a cluster. Raises: WorkerError."""
        self.count += 1
        plan = Plan(
            file=self._scenario.file,
            name=self._scenario.name,
            directory=str(self._base / f"{self.count:03}"),
            verbose=self._verbose,
        )
        self._worker, self._cases = Worker(plan), 0
        self._worker.wait_ready(START_SECONDS_MAX)
        return self._worker

    def keep(self) -> str:
        """Stop the cluster, and keep its files."""
        return self._stop(keep=True)

    def close(self) -> None:
        """Stop the cluster, and remove its files."""
        self._stop(keep=self._keep_all)

    def _stop(self, *, keep: bool) -> str:
        worker, self._worker = self._worker, None
        if worker is None:
            return ""
        worker.close()
        if keep:
            return worker.directory
        shutil.rmtree(worker.directory, ignore_errors=True)
        return ""


class SimulatedClusters:
    """A new simulation for each case: the same case and seed give the same run."""

    def __init__(self, scenario: Scenario, *, verbose: bool = False) -> None:
        self._scenario, self._verbose = scenario, verbose
        self.count = 0

    def run(self, case: Case, undisturbed: Undisturbed, seed: int) -> Answer:
        """Run a case in a simulation of this seed."""
        # These import the components.
        from nominee.lab.chaos.disturbed_run import run_case
        from nominee.lab.scenario.clusters.simulated_cluster import SimulatedCluster
        from nominee.lab.scenario.play.narration import Silent, TextNarrator
        from nominee.lab.scenario.play.simulate import with_cluster
        from nominee.localcluster.cluster import ClusterError
        from nominee.simulation.simulation import Simulation

        self.count += 1
        simulation = Simulation(seed)
        narrate = TextNarrator(simulation.clock, to_stderr=True) if self._verbose else Silent()

        async def play(cluster: SimulatedCluster) -> Ran:
            return await run_case(self._scenario, case, cluster, narrate, undisturbed, clean_up=False)

        try:
            return Answer.of(with_cluster(self._scenario.cluster, simulation, play))
        except ClusterError as error:
            raise WorkerError(str(error)) from None

    def keep(self) -> str:
        """Return "": the command that runs the case again shows everything."""
        return ""

    def close(self) -> None:
        """Do nothing: a simulation has ended with its run."""
