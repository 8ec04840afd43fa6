"""Run scenarios on clusters of their own: start with `nominee up`, play, stop.

Call these from a process that has not used gRPC, once: they start processes first and connect then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio

from nominee.lab.scenario.acting.base import Action
from nominee.lab.scenario.fields.options import ClusterOptions, ClusterOverrides
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.up_options import missing_program, write
from nominee.lab.scenario.play.narration import Narrator, Silent
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.localcluster.cluster import ClusterError
from nominee.localcluster.own_cluster import ClusterStartError, cluster
from nominee.machinery.runtime.clock import SystemClock


class NotStartedError(Exception):
    """The cluster did not start; the message is its output."""


def run_together(
    scenarios: Sequence[Scenario],
    directory: Path,
    *,
    overrides: ClusterOverrides | None = None,
    narrate: Narrator | None = None,
    first: Sequence[Action] = (),
) -> list[ScenarioResult]:
    """Run scenarios one after another on one cluster, up to the first that does not hold.

    Their `spec.cluster` must be equal; `overrides` change it, `first` are actions before the first step. What
    a scenario created is deleted after it; if that fails, the rest is not run.
    """
    options = (overrides or ClusterOverrides()).applied_to(scenarios[0].cluster)
    if any(scenario.cluster != scenarios[0].cluster for scenario in scenarios):
        raise ValueError("scenarios that share a cluster must have the same spec.cluster")
    if program := missing_program(options):
        return [ended(each, Outcome.SKIPPED, f"the program {program} is not installed") for each in scenarios]
    say = narrate or Silent()

    async def play() -> list[ScenarioResult]:
        return await _play(scenarios, directory, options, say, first)

    try:
        with started(options, directory):
            results = anyio.run(play, backend_options={"use_uvloop": True})
    except (NotStartedError, ClusterError) as error:
        say.failed(f"the cluster did not start: {error}")
        results = [ended(scenarios[0], Outcome.ERROR, f"the cluster did not start: {error}")]
    return [replace(result, directory=str(directory)) for result in results]


@contextmanager
def started(options: ClusterOptions, directory: Path) -> Iterator[None]:
    """Run a cluster until the block ends.

    Raises:
        NotStartedError: it does not start, or the directory has the data of another cluster.
    """
    if (directory / "etcd").exists():
        raise NotStartedError(f"{directory} has the data of another cluster; give another directory")
    file = write(options, directory / "scenario")
    try:
        with cluster(directory, ["--config", str(file)], components=""):
            yield
    except ClusterStartError as error:
        raise NotStartedError(str(error)) from None


def ended(scenario: Scenario, outcome: Outcome, reason: str) -> ScenarioResult:
    """Return the result of a scenario that was not played."""
    return ScenarioResult(
        scenario=scenario.name,
        title=scenario.title,
        section=scenario.section,
        file=scenario.file,
        outcome=outcome,
        reason=reason,
    )


async def _play(
    scenarios: Sequence[Scenario],
    directory: Path,
    options: ClusterOptions,
    say: Narrator,
    first: Sequence[Action],
) -> list[ScenarioResult]:
    # These import gRPC; the cluster is started before.
    from nominee.lab.scenario.clusters.real_cluster import RealCluster
    from nominee.lab.scenario.play.runner import NotCleanError, run

    results = []
    async with RealCluster.open(directory, options, SystemClock()) as opened:
        for scenario in scenarios:
            is_last = scenario is scenarios[-1]
            try:
                result = await run(
                    scenario,
                    opened,
                    say,
                    first=first,
                    clean_up=not is_last,
                )
            except NotCleanError as error:
                say.saw(str(error))
                results.append(error.result)
                break
            results.append(result)
            if not result.held:
                break
    return results
