"""Run scenarios on one cluster, in a process of their own (a job).

Each cluster has one: it starts processes, which a process that has used gRPC must not do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nominee.lab.jobs.job import Write
from nominee.lab.scenario.clusters.run_options import RunOptions
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.play.narration import TextNarrator
from nominee.lab.scenario.play.play import run_together
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import SystemClock


def play_on_one_cluster(
    _work: Path,
    write: Write,
    scenarios: Sequence[Scenario],
    directory: Path,
    options: RunOptions,
    to_stderr: bool,
) -> None:
    """Run scenarios that share a cluster, in its directory; write their results."""
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
