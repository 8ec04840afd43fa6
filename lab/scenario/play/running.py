"""Run scenarios, each in a process of its own, and collect their results."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from nominee.lab.jobs.job import Ended, Job, Line, Write
from nominee.lab.jobs.local import LocalExecutor
from nominee.lab.scenario.clusters.run_options import RunOptions
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.replacing import adapt
from nominee.lab.scenario.format.up_options import missing_program
from nominee.lab.scenario.play.narration import TextNarrator
from nominee.lab.scenario.play.play import ended, run_together
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of all scenarios of a command: their places, and the changes to them.

    `base` is the directory below which each scenario has its own; `keep` keeps those of scenarios that held.
    """

    base: Path
    keep: bool = False
    options: RunOptions = field(default_factory=RunOptions)
    to_stderr: bool = False


def used_directory(scenarios: Sequence[Scenario], base: Path) -> Path | None:
    """Return the first directory of a scenario below `base` that has files; None if all are new.

    A cluster would find the objects of an earlier one there, and the directory is removed after the run.
    """
    directories = (base / scenario.name for scenario in scenarios)
    return next((each for each in directories if each.is_dir() and any(each.iterdir())), None)


def run_apart(scenarios: Sequence[Scenario], settings: RunSettings) -> list[ScenarioResult]:
    """Run each scenario on a cluster of its own, one after another."""
    playable, skipped = _with_programs(scenarios, settings)
    return skipped + [
        result
        for scenario in playable
        for result in run_on_one_cluster([scenario], settings.base / scenario.name, settings)
    ]


def run_shared(scenarios: Sequence[Scenario], settings: RunSettings) -> list[ScenarioResult]:
    """Run scenarios with the same `spec.cluster` on one cluster, and on another one after a failure."""
    playable, results = _with_programs(scenarios, settings)
    groups: list[list[Scenario]] = []
    for scenario in playable:
        found = next((group for group in groups if group[0].cluster == scenario.cluster), None)
        if found is None:
            groups.append([scenario])
        else:
            found.append(scenario)
    for group in groups:
        remaining = group
        while remaining:
            played = run_on_one_cluster(remaining, settings.base / remaining[0].name, settings)
            results += played
            remaining = remaining[len(played) :]
    return results


def _with_programs(
    scenarios: Sequence[Scenario], settings: RunSettings
) -> tuple[list[Scenario], list[ScenarioResult]]:
    """Return the scenarios with the programs of --replace, and the results of those that cannot have them."""
    adapted = [adapt(each, settings.options.programs) for each in scenarios]
    skipped = [ended(each.scenario, Outcome.SKIPPED, each.obstacle) for each in adapted if each.obstacle]
    return [each.scenario for each in adapted if not each.obstacle], skipped


def run_on_one_cluster(
    scenarios: Sequence[Scenario], directory: Path, settings: RunSettings
) -> list[ScenarioResult]:
    """Run scenarios with the same `spec.cluster` one after another, up to the first that does not hold.

    They run in a process of their own. The directory is removed if they held, unless `settings.keep`.
    """
    if program := missing_program(scenarios[0].cluster):
        reason = f"the program {program} is not installed"
        return [ended(scenario, Outcome.SKIPPED, reason) for scenario in scenarios]
    job = Job(
        id=directory.name,
        function="nominee.lab.scenario.play.running:play_on_one_cluster",
        arguments=(scenarios, directory, settings.options, settings.to_stderr),
        noun="scenario",
    )
    results: list[ScenarioResult] = []
    try:
        with closing(LocalExecutor().run([job])) as reports:
            for report in reports:
                if isinstance(report, Line):
                    results.append(ScenarioResult.from_json(report.value))
                elif isinstance(report, Ended) and not results:
                    reason = f"{report.problem or 'there is no result'}; see its output above"
                    results = [ended(scenarios[0], Outcome.ERROR, reason)]
    except KeyboardInterrupt:
        if not settings.keep:
            shutil.rmtree(directory, ignore_errors=True)
        raise
    if all(result.held for result in results) and not settings.keep:
        shutil.rmtree(directory, ignore_errors=True)
        results = [replace(result, directory="") for result in results]
    return [replace(result, reproduce=_reproduce(result, settings)) for result in results]


def play_on_one_cluster(
    _work: Path,
    write: Write,
    scenarios: Sequence[Scenario],
    directory: Path,
    options: RunOptions,
    to_stderr: bool,
) -> None:
    """Run scenarios that share a cluster, in its directory; write their results (a job).

    Each cluster has a process: one that has used gRPC must not start the processes of the next.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "scenario.log").open("a", encoding="utf-8") as log:
        logs.configure("scenario", stream=log)
        results = run_together(
            scenarios,
            directory,
            overrides=options.overrides,
            first=options.first,
            narrate=TextNarrator(SystemClock(), to_stderr=to_stderr),
        )
    for result in results:
        write(result.as_json())


def _reproduce(result: ScenarioResult, settings: RunSettings) -> str:
    words = ["nominee", "scenario", "run", result.file, "--name", result.scenario]
    return shlex.join([*words, *settings.options.words()])
