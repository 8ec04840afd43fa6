"""The messages between an explorer and its workers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Activity, Ran, Undisturbed
from nominee.lab.chaos.cases.tolerance import rules_alone
from nominee.lab.chaos.cases.trace import TracedWrite, pass_features, signature
from nominee.lab.chaos.outcomes import branches
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.result import ScenarioResult
from nominee.machinery.wire.values.scalars import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRequest:
    """A case that a worker runs; `rules_only` as of ExplorationSettings."""

    case: Case
    undisturbed: Undisturbed
    rules_only: bool = False

    def to_json(self) -> str:
        """Return the request as a line."""
        known = self.undisturbed
        return json.dumps({"case": str(self.case), "rules_only": self.rules_only, **asdict(known)})

    def scenario_of(self, scenario: Scenario) -> Scenario:
        """Return the scenario of the case: with rules alone, one whose steps and checks may fail."""
        return rules_alone(scenario) if self.rules_only and self.case.perturbations else scenario

    @classmethod
    def from_json(cls, text: str) -> CaseRequest:
        """Return the request that `to_json` wrote."""
        document = json.loads(text)
        needed = {int(number): float(seconds) for number, seconds in document["needed"].items()}
        known = Undisturbed(
            needed=needed,
            lasting=document["lasting"],
            launches=document["launches"],
            shapes=document["shapes"],
            work=document["work"],
            is_asked=document["is_asked"],
        )
        case = Case.parse(document["case"])
        return cls(case=case, undisturbed=known, rules_only=document["rules_only"])


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """The answer of a worker: the result of a case, or in `error` why it could not be run.

    `ready` alone: the cluster runs.
    """

    ready: bool = False
    error: str = ""
    result: Mapping[str, Json] | None = None
    activity: Mapping[str, Json] | None = None
    reached: bool = False
    unsettled: str = ""
    is_clean: bool = False
    lasting: Sequence[int] = ()
    shapes: Mapping[str, int] = field(default_factory=dict)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    work: Mapping[str, float] = field(default_factory=dict)
    trace: Sequence[TracedWrite] = ()
    passes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    branches: Sequence[int] = ()
    """Of the program, if they are watched (outcomes/branches.py)."""

    def as_json(self) -> Json:
        """Return the answer as a JSON object."""
        return asdict(self)

    @classmethod
    def of(cls, ran: Ran) -> CaseAnswer:
        """Return the answer for a run."""
        return cls(
            result=ran.result.as_json(),
            activity=asdict(ran.activity),
            reached=ran.reached,
            unsettled=ran.unsettled,
            is_clean=ran.is_clean,
            lasting=ran.lasting,
            shapes=ran.shapes,
            facts=ran.facts,
            work=ran.work,
            trace=ran.trace,
            passes=ran.passes,
            branches=branches.collect(),
        )

    @classmethod
    def from_json(cls, value: Json) -> CaseAnswer:
        """Return the answer that `as_json` made a JSON object."""
        trace = [TracedWrite(**{**each, "changes": tuple(each["changes"])}) for each in value["trace"]]
        return cls(**{**value, "trace": trace})

    @property
    def all_held(self) -> bool:
        """Return whether nothing was found, not even an accepted finding."""
        if self.error or self.unsettled:
            return False
        result = self.scenario_result
        return result.held and not result.violations

    @property
    def observed_activity(self) -> Activity:
        """Return the activity of the processes in an undisturbed run."""
        return Activity(**(self.activity or {}))

    @property
    def features(self) -> frozenset[str]:
        """Return the features of the run, of which explorations look for new ones."""
        taken = frozenset(f"branch {number}" for number in self.branches)
        return signature(self.trace) | pass_features(self.passes) | taken

    @property
    def scenario_result(self) -> ScenarioResult:
        """Return the result of the scenario."""
        if self.result is None:
            raise ValueError(self.error)
        return ScenarioResult.from_json(self.result)
