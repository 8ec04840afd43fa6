"""Run one process for each tracking option, one after another, and collect their results."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from nominee.lab.study.results import Results, decode
from nominee.lab.study.settings import Scenario, Tracking
from nominee.localcluster.own_process import run_module


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
    arguments = [
        *("--dir", str(directory)),
        *("--tracking", tracking.value, "--seeds", str(seeds), *(["--quick"] if quick else [])),
        *(word for scenario in scenarios for word in ("--scenario", scenario.value)),
    ]
    with tempfile.TemporaryFile("w+") as printed:
        if run_module("nominee.lab.study.runner", arguments, printed) != 0:
            raise StudyError(f"the run with tracking {tracking.value} failed")
        printed.seek(0)
        found: list[dict[str, object]] = json.load(printed)
    return found
