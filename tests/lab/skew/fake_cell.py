"""A program in place of `nominee.lab.skew.cell_program`: it passes once the test creates the file `released`,
or `released-SCENARIO`.

It appends its scenario, its pid and that of its parent to the file `started`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from nominee.lab.scenario.play.program import Plan
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.machinery.process.parent_death import die_with_parent
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


def main() -> None:
    """Run the cell."""
    die_with_parent(int(sys.argv[1]))
    plan = Plan.from_json(sys.argv[2])
    folder = Path(os.environ[FOLDER])
    ((_, name),) = plan.scenarios
    with (folder / "started").open("a", encoding="utf-8") as file:
        file.write(f"{name} {os.getpid()} {os.getppid()}\n")
    eventually_sync(lambda: any((folder / each).exists() for each in ("released", f"released-{name}")))
    result = ScenarioResult(scenario=name, outcome=Outcome.PASSED, seconds=1.0)
    Path(plan.results).write_text(json.dumps([result.as_json()]), encoding="utf-8")


if __name__ == "__main__":
    main()
