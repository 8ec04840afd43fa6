"""Run scenarios with one tracking option, in a process of its own (a job).

Each option has one: it starts a cluster, which a process that has used gRPC must not do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from nominee.lab.jobs.job import Write
from nominee.lab.study.lab import Lab
from nominee.lab.study.observation import TrialResult
from nominee.lab.study.plans import FILLER_PRIORITY, RESIZER_PRIORITY, VICTIM_PRIORITIES
from nominee.lab.study.results import Results, Setup
from nominee.lab.study.settings import (
    CRASH_POINTS,
    FULL,
    GATE,
    NODE_CPU,
    NODE_PODS,
    QUICK,
    QUICK_CRASH_POINTS,
    Fit,
    Scenario,
    Sizes,
    Tracking,
)
from nominee.lab.study.stage import Stage
from nominee.lab.study.throughput import Throughput
from nominee.lab.study.throughput_results import Rate
from nominee.lab.study.trials import SETS, Trials
from nominee.localcluster.own_cluster import cluster
from nominee.machinery.runtime.clock import SystemClock


def up_options(tracking: Tracking, nodes: int) -> list[str]:
    """Return the options of `nominee up` for a tracking option."""
    allow = "--allow-nominated-node-name-of-deferred-resizes"
    return [
        f"--nodes={nodes}",
        "--restart=never",
        f"--feature-gates={GATE}=true",
        f"--arg=kubelet=--node-cpu={NODE_CPU}m",
        f"--arg=kubelet=--node-pods={NODE_PODS}",
        f"--arg=scheduler=--resize-preemption-tracking={tracking.value}",
        *([f"--arg=apiserver={allow}"] if tracking is Tracking.NOMINATED_NODE_NAME else []),
    ]


class Runner:
    """Runs the chosen scenarios in the cluster of one tracking option."""

    def __init__(self, lab: Lab, tracking: Tracking, sizes: Sizes, seeds: Sequence[int]) -> None:
        self._lab, self._tracking, self._sizes, self._seeds = lab, tracking, sizes, seeds
        self._trials = Trials(lab, sizes, seeds)
        self._measured: list[tuple[Setup, TrialResult]] = []
        self._rates: list[tuple[Setup, Rate]] = []

    async def run(self, scenarios: Sequence[Scenario], points: Sequence[str]) -> Results:
        """Return the results of all scenarios."""
        priorities = [*VICTIM_PRIORITIES, FILLER_PRIORITY, RESIZER_PRIORITY]
        await self._lab.create_priorities(priorities)
        if Scenario.CRASH in scenarios:
            for point in points:
                if self._is_on_path(point):
                    self._add(Scenario.CRASH, Fit.SCHEDULER, await self._trials.crash(point))
        if Scenario.GRACE in scenarios:
            self._add(Scenario.GRACE, Fit.SCHEDULER, await self._trials.grace())
        if Scenario.FOUR_PODS in scenarios:
            for fit in (Fit.KUBELET, Fit.SCHEDULER):
                await self._lab.stage.restart("scheduler", f"--resize-fit={fit.value}")
                self._add(Scenario.FOUR_PODS, fit, await self._trials.four_pods())
        if Scenario.THROUGHPUT in scenarios:
            await self._measure(Fit.SCHEDULER)
            if self._tracking is Tracking.NONE:
                await self._lab.stage.restart("scheduler", f"--resize-fit={Fit.KUBELET.value}")
                await self._measure(Fit.KUBELET)
        return Results(self._measured, self._rates)

    def _is_on_path(self, point: str) -> bool:
        return "status" not in point or self._tracking is Tracking.NOMINATED_NODE_NAME

    async def _measure(self, fit: Fit) -> None:
        first = SETS * len(self._seeds)
        rates = await Throughput(self._lab, self._sizes, self._seeds, first).run()
        setup = Setup(scenario=Scenario.THROUGHPUT, tracking=self._tracking, fit=fit)
        self._rates += [(setup, rate) for rate in rates]
        self._say(Scenario.THROUGHPUT)

    def _add(self, scenario: Scenario, fit: Fit, trials: Sequence[TrialResult]) -> None:
        setup = Setup(scenario=scenario, tracking=self._tracking, fit=fit)
        self._measured += [(setup, trial) for trial in trials]
        self._say(scenario, trials[0].point)

    def _say(self, scenario: Scenario, point: str = "") -> None:
        print(f"{self._tracking.value}: {scenario.value} {point}".rstrip(), file=sys.stderr, flush=True)


async def _run(
    directory: Path,
    tracking: Tracking,
    sizes: Sizes,
    seeds: Sequence[int],
    scenarios: Sequence[Scenario],
    points: Sequence[str],
) -> Results:
    clock = SystemClock()
    async with Stage.open(directory, clock) as stage:
        return await Runner(Lab(stage, clock), tracking, sizes, seeds).run(scenarios, points)


def run(
    work: Path,
    write: Write,
    directory: Path | None,
    tracking: Tracking,
    scenarios: Sequence[Scenario],
    seeds: int,
    quick: bool,
) -> None:
    """Start a cluster in a directory (None: the job's), run the scenarios, and write their results."""
    sizes = QUICK if quick else FULL
    nodes = SETS * seeds
    if Scenario.THROUGHPUT in scenarios:
        nodes += sizes.deferred_nodes + sizes.free_nodes
    place = directory or work / "c"
    with cluster(place, up_options(tracking, nodes), "etcd,apiserver,scheduler,kubelet"):
        results = anyio.run(
            _run,
            place,
            tracking,
            sizes,
            range(seeds),
            scenarios,
            QUICK_CRASH_POINTS if quick else CRASH_POINTS,
            backend_options={"use_uvloop": True},
        )
    for document in results.documents:
        write(document)
