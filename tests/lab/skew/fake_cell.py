"""A job in place of a cell: it passes once the test creates the file `released`, or `released-SCENARIO`.

It appends its scenario, its pid and that of its parent to the file `started`.
"""

from __future__ import annotations

import os
from pathlib import Path

from nominee.lab.jobs.job import Write
from nominee.lab.scenario.format.documents import read_documents
from nominee.lab.scenario.format.replacing import Programs
from nominee.lab.scenario.result import Outcome, ScenarioResult
from tests.support.eventually import eventually_sync

FOLDER = "SKEW_TEST_FOLDER"


def started(folder: Path) -> list[tuple[str, int]]:
    """Return the scenarios that were started, and their pids."""
    return [(name, pid) for name, pid, _ in started_by(folder)]


def started_by(folder: Path) -> list[tuple[str, int, int]]:
    """Return the scenarios that were started, their pids, and those of their parents."""
    try:
        lines = (folder / "started").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [(name, int(pid), int(parent)) for name, pid, parent in map(str.split, lines)]


def play(_directory: Path, write: Write, text: str, _simulated: bool, _programs: Programs) -> None:
    """Play the cell."""
    folder = Path(os.environ[FOLDER])
    name = read_documents(text, "")[0].value["metadata"]["name"]
    with (folder / "started").open("a", encoding="utf-8") as file:
        file.write(f"{name} {os.getpid()} {os.getppid()}\n")
    eventually_sync(lambda: any((folder / each).exists() for each in ("released", f"released-{name}")))
    write(ScenarioResult(scenario=name, outcome=Outcome.PASSED, seconds=1.0).as_json())
