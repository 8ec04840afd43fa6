"""The verdict on one run with perturbations. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from nominee.lab.chaos.cases.case import Case
from nominee.lab.reports.records import Record
from nominee.lab.scenario.result import Outcome, ScenarioResult, Violation
from nominee.machinery.wire.values.scalars import Json


class Verdict(Enum):
    """The end of a case.

    INCONCLUSIVE: a wait of the scenario did not end, so that later steps were not tried. UNREACHED: the run
    did not come to a perturbation. ERROR: the case could not be run.
    """

    HELD = "held"
    BROKEN = "broken"
    INCONCLUSIVE = "inconclusive"
    UNREACHED = "unreached"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult(Record):
    """The result of one case: what was observed, and the command that reproduces it."""

    case: Case
    verdict: Verdict
    observation: str = ""
    violations: tuple[Violation, ...] = ()
    seconds: float = 0.0
    directory: str = ""
    reproduce: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the result as JSON."""
        return {**Record.as_json(self), "case": str(self.case)}


def judge(case: Case, result: ScenarioResult, *, reached: bool, unsettled: str = "") -> CaseResult:
    """Return the verdict on a run.

    `reached`: every perturbation took effect. `unsettled` is what the cluster had not done after the
    perturbations had ended, "" if it had come to rest.
    """
    verdict, observation = _verdict(result, reached, unsettled)
    return CaseResult(
        case=case,
        verdict=verdict,
        observation=observation,
        violations=result.violations,
        seconds=result.seconds,
        directory=result.directory,
    )


def _verdict(result: ScenarioResult, reached: bool, unsettled: str) -> tuple[Verdict, str]:
    if result.violations:
        first = result.violations[0]
        return Verdict.BROKEN, f"{first.invariant}: {first.message}"
    if unsettled:
        return Verdict.BROKEN, f"the cluster does not come to rest: {unsettled}"
    if result.outcome is Outcome.FAILED:
        failed = next((step for step in result.steps if step.outcome is Outcome.FAILED), None)
        if failed is not None and failed.verb == "wait":
            return Verdict.INCONCLUSIVE, result.reason
        return Verdict.BROKEN, result.reason
    if result.outcome in (Outcome.ERROR, Outcome.SKIPPED):
        return Verdict.ERROR, result.reason
    return (Verdict.HELD, "") if reached else (Verdict.UNREACHED, "")
