"""Run the study: jobs that simulate the trials of some seeds, and one for each measured throughput."""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import anyio

from nominee.lab.jobs.job import Ended, Executor, Job, Line, Write
from nominee.lab.scenario.clusters.simulated_cluster import SimulatedCluster
from nominee.lab.scenario.play.narration import Silent
from nominee.lab.scenario.play.play import started
from nominee.lab.scenario.play.simulate import with_cluster
from nominee.lab.scenario.play.simulation_running import between_runs
from nominee.lab.study.composition import cluster_of, compose, drawn, plan_of
from nominee.lab.study.results import Row, row_of
from nominee.lab.study.settings import Scenario, Setup, Sizes, setups
from nominee.localcluster.cluster import ClusterError
from nominee.scheduler.framework.resize_preemption import Fit, Tracking

_THIS = "nominee.lab.study.runner"
_SEEDS_PER_JOB = 50


class StudyError(RuntimeError):
    """A run failed; its own messages are above on standard error."""


def measure(
    trackings: Sequence[Tracking],
    scenarios: Sequence[Scenario],
    sizes: Sizes,
    simulating: Executor,
    measuring: Executor,
    say: Callable[[str], None],
) -> dict[Setup, list[Row]]:
    """Return the rows of each setup: simulations first, then throughput, one cluster at a time.

    Raises:
        StudyError: a run failed.
        ExecutorError: an executor cannot run them.
    """
    found: dict[Setup, list[Row]] = {}
    simulated = [each for one in scenarios for each in setups(one, tuple(trackings))]
    throughput = trackings if Scenario.THROUGHPUT in scenarios else ()
    for executor, jobs in (
        (simulating, _simulations(simulated, sizes)),
        (measuring, _loads(throughput, sizes)),
    ):
        total = len(jobs)
        with closing(executor.run(jobs)) as reports:
            for each in reports:
                if isinstance(each, Line):
                    setup, row = each.value
                    found.setdefault(Setup.from_json(setup), []).append(row)
                elif isinstance(each, Ended):
                    if each.problem:
                        raise StudyError(f"{each.job.id} failed: {each.problem}")
                    total -= 1
                    say(f"{each.job.id} has ended; {total} {each.job.noun}s are left")
    order = [each for each in simulated if each in found]
    order += [each for each in found if each not in order]
    return {each: sorted(found[each], key=lambda row: row["seed"]) for each in order}


def _simulations(chosen: Sequence[Setup], sizes: Sizes) -> list[Job]:
    """Return the jobs of the simulated trials."""
    return [
        Job(
            id=f"seeds-from-{first}",
            function=f"{_THIS}:simulate_trials",
            arguments=(list(chosen), range(first, min(first + _SEEDS_PER_JOB, sizes.seeds)), sizes),
            noun="simulation",
            stop_seconds_max=0.0,
            own_temporary_files=True,
        )
        for first in range(0, sizes.seeds if chosen else 0, _SEEDS_PER_JOB)
    ]


def _loads(trackings: Sequence[Tracking], sizes: Sizes) -> list[Job]:
    """Return the jobs that measure throughput."""
    function = f"{_THIS}:run_throughput"
    return [
        Job(id=f"throughput-{each.value}", function=function, arguments=(each, sizes), noun="throughput")
        for each in trackings
    ]


def simulate_trials(
    _directory: Path, write: Write, chosen: Sequence[Setup], seeds: Sequence[int], sizes: Sizes
) -> None:
    """Simulate the trials of some seeds (a job); write setup and row of each."""
    gc.disable()  # `between_runs` collects
    for seed in seeds:
        for together in _by_cluster([each for each in chosen if seed < sizes.seeds_for(each)]):
            _simulate(together, seed, write)
            between_runs()


def _simulate(together: Sequence[Setup], seed: int, write: Write) -> None:
    """Start a cluster, and play the trials of one seed, each in a fork of this process."""
    from nominee.simulation.simulation import Simulation  # it imports the components

    simulation = Simulation(seed)

    async def play(cluster: SimulatedCluster) -> None:
        for setup in together:
            child = simulation.loop.fork()
            if child == 0:
                await _play(cluster, setup, seed, write)
            if code := _exit_code(child):
                raise ClusterError(f"{setup}, seed {seed}: exit code {code}")

    with_cluster(cluster_of(together[0]), simulation, play)


def _by_cluster(chosen: Sequence[Setup]) -> Iterator[list[Setup]]:
    """Yield the setups that have the same cluster."""
    left = list(chosen)
    while left:
        cluster = cluster_of(left[0])
        same = [each for each in left if cluster_of(each) == cluster]
        yield same
        left = [each for each in left if each not in same]


def _exit_code(child: int) -> int:
    """Wait for the end of a fork; nothing else is to be done meanwhile."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def _play(cluster: SimulatedCluster, setup: Setup, seed: int, write: Write) -> NoReturn:
    """Play a trial, write its row, and end this process, a fork, without the end of the simulation."""
    from nominee.lab.scenario.play.runner import run  # it imports gRPC

    try:
        result = await run(compose(setup, seed), cluster, Silent())
        if not result.held:
            raise StudyError(f"{setup}, seed {seed}: {result.reason}")
        measured = {name: value for each in result.measurements for name, value in each.values.items()}
        row = row_of(plan_of(setup, seed), seed, drawn(setup, seed), measured)
        write([setup.as_json(), row])
        os._exit(os.EX_OK)
    except BaseException:  # noqa: BLE001  # a fork must never go on as its parent would
        traceback.print_exc()
        os._exit(os.EX_SOFTWARE)


def run_throughput(_directory: Path, write: Write, tracking: Tracking, sizes: Sizes) -> None:
    """Measure the throughput of an option on a cluster of real processes (a job); write setup and row."""
    # It imports gRPC; the cluster is started before.
    from nominee.lab.study.throughput import run

    place = _directory / "c"
    fits = [Fit.SCHEDULER, Fit.KUBELET] if tracking is Tracking.NONE else [Fit.SCHEDULER]
    setup = Setup(scenario=Scenario.THROUGHPUT, tracking=tracking)
    with started(cluster_of(setup, sizes.deferred_nodes + sizes.free_nodes), place):
        rates = anyio.run(run, place, sizes, fits, backend_options={"use_uvloop": True})
    for fit, condition, row in rates:
        write([replace(setup, fit=fit, variant=condition).as_json(), row])
