"""The result of a scenario: its steps, the invariants that were broken, and how to reproduce it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from nominee.lab.reports.records import Record
from nominee.machinery.wire.values.scalars import Json

OBJECTS_MAX: Final = 3
"""Objects at fault that are named."""


class Outcome(Enum):
    """The end of a scenario or a step.

    FAILED: an expectation or invariant did not hold. ERROR: the scenario could not be played (the cluster did
    not start, a request was refused). SKIPPED: a program that it needs is not installed.
    """

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult(Record):
    """One step: when it began (seconds since the scenario began), its duration and its observation."""

    number: int
    verb: str
    name: str
    line: int
    started_seconds: float
    seconds: float
    outcome: Outcome
    observation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation(Record):
    """An invariant, or an expectation over the whole run, that did not hold."""

    invariant: str
    message: str
    revisions: tuple[int, ...] = ()
    objects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements(Record):
    """The values of the measures by name, for one variant; those that use no variant have an empty one."""

    variant: Mapping[str, Json]
    values: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult(Record):
    """The result of one run.

    `directory` has logs and history, if they are kept. `left_out`: conditions that another program in
    a component's place cannot answer.
    """

    scenario: str
    title: str = ""
    section: str = ""
    file: str = ""
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    checks: int = 0
    steps: tuple[StepResult, ...] = ()
    violations: tuple[Violation, ...] = ()
    objects: tuple[str, ...] = ()
    """The objects at fault, as `Pod default/a`: those of the violations, and of the step that failed."""
    measurements: tuple[Measurements, ...] = ()
    directory: str = ""
    reproduce: str = ""
    failpoints: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How often each failpoint was passed, by component, where that is asked for."""
    left_out: tuple[str, ...] = ()
    seeds: str = ""
    """Of `--seeds`: how many held."""

    @property
    def held(self) -> bool:
        """Return whether nothing failed; a skipped scenario did not fail."""
        return self.outcome in (Outcome.PASSED, Outcome.SKIPPED)
