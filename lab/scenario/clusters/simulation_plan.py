"""The runs of one simulating process, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from nominee.lab.scenario.clusters.run_options import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationPlan:
    """Scenarios (file and name), each with the seeds `first`, `first + step`, ... up to `last`."""

    scenarios: Sequence[tuple[str, str]]
    first: int
    last: int
    step: int = 1
    options: RunOptions = field(default_factory=RunOptions)

    @property
    def seeds(self) -> range:
        """Return the seeds."""
        return range(self.first, self.last + 1, self.step)

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SimulationPlan:
        """Return the plan that `to_json` wrote."""
        document = json.loads(text)
        document["scenarios"] = [(file, name) for file, name in document["scenarios"]]
        document["options"] = RunOptions.from_json(document["options"])
        return cls(**document)
