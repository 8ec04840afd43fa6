"""Run one process for each tracking option, one after another, and collect their results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from nominee.ending import kill
from nominee.study.results import Results, decode
from nominee.study.settings import Scenario, Tracking
from nominee.supervisor.children import before_exec


class StudyError(RuntimeError):
    """A run failed; its own messages are above on standard error."""


def measure(
    directory: Path,
    trackings: Sequence[Tracking],
    scenarios: Sequence[Scenario],
    seeds: int,
    *,
    quick: bool,
    say: Callable[[str], None],
) -> Results:
    """Return the results of all runs; each run has its own cluster below `directory`.

    Raises:
        StudyError: a run failed.
    """
    documents: list[dict[str, object]] = []
    for tracking in trackings:
        say(f"{tracking.value}: the cluster starts")
        documents += _run(directory / tracking.value, tracking, scenarios, seeds, quick)
    return decode(documents)


def _run(
    directory: Path, tracking: Tracking, scenarios: Sequence[Scenario], seeds: int, quick: bool
) -> list[dict[str, object]]:
    command = [
        *(sys.executable, "-P", "-m", "nominee.study.runner", "--dir", str(directory)),
        *("--tracking", tracking.value, "--seeds", str(seeds), *(["--quick"] if quick else [])),
        *(word for scenario in scenarios for word in ("--scenario", scenario.value)),
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=before_exec(),
    )
    try:
        output, _ = process.communicate()
    finally:
        kill(process)
    if process.returncode != 0:
        raise StudyError(f"the run with tracking {tracking.value} failed")
    found: list[dict[str, object]] = json.loads(output)
    return found
