"""`python -m nominee.lab.scenario.play.program PLAN`: run the scenarios of a plan on one cluster.

A process of its own for each cluster: it starts processes, which a process that has used gRPC must not do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nominee.lab.scenario.clusters.run_options import RunOptions
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.play.narration import TextNarrator
from nominee.lab.scenario.play.play import run_together
from nominee.localcluster import output
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The input: scenarios (file and name) that share a cluster, its directory, the file of the results."""

    scenarios: Sequence[tuple[str, str]]
    directory: str
    results: str
    options: RunOptions = field(default_factory=RunOptions)
    to_stderr: bool = False

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Return the plan that `to_json` wrote."""
        document = json.loads(text)
        document["scenarios"] = [(file, name) for file, name in document["scenarios"]]
        document["options"] = RunOptions.from_json(document["options"])
        return cls(**document)


def main(text: str) -> int:
    """Run a plan; return 0 if everything held, else 1."""
    plan = Plan.from_json(text)
    scenarios = [_find(Path(file), name) for file, name in plan.scenarios]
    Path(plan.directory).mkdir(parents=True, exist_ok=True)
    with (Path(plan.directory) / "scenario.log").open("a", encoding="utf-8") as log:
        logs.configure("scenario", stream=log)
        results = run_together(
            scenarios,
            Path(plan.directory),
            overrides=plan.options.overrides,
            first=plan.options.first,
            narrate=TextNarrator(SystemClock(), to_stderr=plan.to_stderr),
        )
    Path(plan.results).write_text(json.dumps([result.as_json() for result in results]), encoding="utf-8")
    return 0 if all(result.held for result in results) else 1


def _find(file: Path, name: str) -> Scenario:
    return next(scenario for scenario in read_file(file) if scenario.name == name)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(output.INTERRUPTED)
    except (OSError, BaseExceptionGroup) as error:
        if not output.is_lost(error):
            raise
        sys.exit(1)
