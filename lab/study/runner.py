"""Run the study: a job for the trials of each tracking option, and one for its throughput."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import anyio

from nominee.lab.jobs.job import Ended, Executor, Job, Line, Write
from nominee.lab.scenario.play.narration import Silent
from nominee.lab.scenario.play.play import run_together, started
from nominee.lab.scenario.result import ScenarioResult
from nominee.lab.study.composition import SETS, cluster_of, compose, plans, rounds
from nominee.lab.study.results import Results, Setup, TrialResult, decode
from nominee.lab.study.settings import CRASH_POINTS, FULL, QUICK, QUICK_CRASH_POINTS, Scenario
from nominee.scheduler.framework.api.deferred_resize import Fit, Tracking

_THIS = "nominee.lab.study.runner"


class StudyError(RuntimeError):
    """A run failed; its own messages are above on standard error."""


def measure(
    directory: Path,
    trackings: Sequence[Tracking],
    scenarios: Sequence[Scenario],
    seeds: int,
    executor: Executor,
    *,
    quick: bool,
    say: Callable[[str], None],
) -> Results:
    """Return the results of all runs; on this machine each has its own cluster below `directory`.

    Raises:
        StudyError: a run failed.
        ExecutorError: the executor cannot run them.
    """
    trials = [one for one in scenarios if one is not Scenario.THROUGHPUT]

    def job(id: str, function: str, *arguments: object) -> Job:
        say(f"{id}: the cluster starts")
        cluster = directory / id if executor.is_local else None
        return Job(id=id, function=f"{_THIS}:{function}", arguments=(cluster, *arguments), noun="run")

    def jobs() -> Iterator[Job]:
        for tracking in trackings:
            if trials:
                yield job(tracking.value, "run_trials", tracking, trials, seeds, quick)
            if Scenario.THROUGHPUT in scenarios:
                yield job(f"{tracking.value}-throughput", "run_throughput", tracking, seeds, quick)

    found: dict[str, list[dict[str, object]]] = {}
    with closing(executor.run(jobs())) as reports:
        for each in reports:
            if isinstance(each, Line):
                found.setdefault(each.job.id, []).append(each.value)
            elif isinstance(each, Ended) and each.problem:
                raise StudyError(f"the run with tracking {each.job.id} failed: {each.problem}")
    order = [f"{tracking.value}{part}" for tracking in trackings for part in ("", "-throughput")]
    return decode([document for id in order for document in found.get(id, ())])


class _Progress(Silent):
    """Prints the name of each scenario that begins."""

    def __init__(self, tracking: Tracking) -> None:
        self._tracking = tracking

    def heading(self, text: str) -> None:
        name, _, _ = text.partition(":")
        print(f"{self._tracking.value}: {name}", file=sys.stderr, flush=True)


def run_trials(
    work: Path,
    write: Write,
    directory: Path | None,
    tracking: Tracking,
    scenarios: Sequence[Scenario],
    seeds: int,
    quick: bool,
) -> None:
    """Play the scenarios of an option on a cluster in a directory (None: the job's); write the results."""
    sizes, points = (QUICK, QUICK_CRASH_POINTS) if quick else (FULL, CRASH_POINTS)
    order = rounds(tracking, scenarios, points)
    drawn = [plans(one, number, range(seeds), sizes) for number, one in enumerate(order)]
    composed = [
        compose(one, number, drawn[number], tracking, SETS * seeds) for number, one in enumerate(order)
    ]
    played = run_together(composed, directory or work / "c", narrate=_Progress(tracking))
    _check(played, len(composed))
    results: list[tuple[Setup, TrialResult]] = []
    for one, trials, result in zip(order, drawn, played, strict=True):
        setup = Setup(scenario=one.scenario, tracking=tracking, fit=one.fit)
        for plan, row in zip(trials, result.measurements, strict=True):
            results.append((setup, TrialResult.of(plan, one.point, row.values, sizes.fallback_seconds)))
    for document in Results(trials=results).documents:
        write(document)


def _check(results: Sequence[ScenarioResult], count: int) -> None:
    """Check that all scenarios were played. Raises: StudyError."""
    last = results[-1]
    if not last.held or len(results) < count:
        reason = last.reason or "the cluster could not be cleaned up after it"
        raise StudyError(f"{last.scenario}: {reason}; {len(results)} of {count} scenarios were played")


def run_throughput(
    work: Path, write: Write, directory: Path | None, tracking: Tracking, seeds: int, quick: bool
) -> None:
    """Measure the throughput of an option on a cluster in a directory (None: the job's); write the rates."""
    # It imports gRPC; the cluster is started before.
    from nominee.lab.study.throughput import run

    sizes = QUICK if quick else FULL
    place = directory or work / "c"
    fits = [Fit.SCHEDULER, Fit.KUBELET] if tracking is Tracking.NONE else [Fit.SCHEDULER]
    nodes = sizes.deferred_nodes + sizes.free_nodes
    with started(cluster_of(tracking, nodes), place):
        rates = anyio.run(run, place, sizes, range(seeds), fits, backend_options={"use_uvloop": True})
    results = [(Setup(scenario=Scenario.THROUGHPUT, tracking=tracking, fit=fit), rate) for fit, rate in rates]
    for document in Results(rates=results).documents:
        write(document)
