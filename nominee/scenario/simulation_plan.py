"""The runs of one simulating process, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationPlan:
    """Scenarios (file and name), each with the seeds `first`, `first + step`, ... up to `last`."""

    scenarios: Sequence[tuple[str, str]]
    first: int
    last: int
    step: int = 1
    versions: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)

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
        return cls(**document)
