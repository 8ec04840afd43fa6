"""The messages between an explorer and its workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from machinery.wire.scalars import Json
from nominee.scenario.result import ScenarioResult

if TYPE_CHECKING:
    from nominee.chaos.disturbed_run import Ran


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The input: a scenario, and the directory of its cluster. `verbose`: steps go to standard error."""

    file: str
    name: str
    directory: str
    verbose: bool = False

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a worker: the result of a case, or in `error` why it could not be run.

    `ready` alone: the cluster runs.
    """

    ready: bool = False
    error: str = ""
    result: Mapping[str, Json] | None = None
    hits: Mapping[str, Mapping[str, int]] | None = None
    reached: bool = False
    unsettled: str = ""
    is_clean: bool = False

    def to_json(self) -> str:
        """Return the answer as a line."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, ran: Ran) -> Answer:
        """Return the answer for a run."""
        return cls(
            result=ran.result.as_json(),
            hits=ran.hits,
            reached=ran.reached,
            unsettled=ran.unsettled,
            is_clean=ran.is_clean,
        )

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """Return the answer that `to_json` wrote."""
        return cls(**json.loads(text))

    @property
    def scenario_result(self) -> ScenarioResult:
        """Return the result of the scenario."""
        if self.result is None:
            raise ValueError(self.error)
        return ScenarioResult.from_json(self.result)
