"""The result of a scenario: its steps, the invariants that were broken, and how to reproduce it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from nominee.machinery.wire.scalars import Json


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
class StepResult:
    """One step: when it began (seconds since the scenario began), how long it took, what was observed."""

    number: int
    verb: str
    name: str
    line: int
    started: float
    seconds: float
    outcome: Outcome
    observation: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the step as JSON."""
        return {
            "number": self.number,
            "verb": self.verb,
            "name": self.name,
            "line": self.line,
            "startedSeconds": round(self.started, 3),
            "seconds": round(self.seconds, 3),
            "outcome": self.outcome.value,
            "observation": self.observation,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invariant, or an expectation over the whole run, that did not hold."""

    invariant: str
    message: str
    revisions: tuple[int, ...] = ()
    objects: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """Return the violation as JSON."""
        return {
            "invariant": self.invariant,
            "message": self.message,
            "revisions": list(self.revisions),
            "objects": list(self.objects),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The values of the measures by name, for one variant; those that use no variant have an empty one."""

    variant: Mapping[str, Json]
    values: Mapping[str, Json]

    def as_json(self) -> dict[str, Json]:
        """Return the values as JSON."""
        return {"variant": dict(self.variant), "values": dict(self.values)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """The result of one run.

    `directory` has logs and history, if they are kept; `failpoints` is how often each failpoint was passed,
    by component.
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
    measurements: tuple[Measurements, ...] = ()
    directory: str = ""
    reproduce: str = ""
    failpoints: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        """Return whether nothing failed; a skipped scenario did not fail."""
        return self.outcome in (Outcome.PASSED, Outcome.SKIPPED)

    def as_json(self) -> dict[str, Json]:
        """Return the result as JSON."""
        return {
            "scenario": self.scenario,
            "title": self.title,
            "section": self.section,
            "file": self.file,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
            "checks": self.checks,
            "steps": [step.as_json() for step in self.steps],
            "violations": [violation.as_json() for violation in self.violations],
            "measurements": [each.as_json() for each in self.measurements],
            "directory": self.directory,
            "reproduce": self.reproduce,
            "failpoints": {name: dict(points) for name, points in self.failpoints.items()},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> ScenarioResult:
        """Return the result that `as_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: the document is something else.
        """
        reader = _Reader(document)
        return cls(
            scenario=reader.text("scenario"),
            title=reader.text("title"),
            section=reader.text("section"),
            file=reader.text("file"),
            outcome=Outcome(reader.text("outcome")),
            reason=reader.text("reason"),
            seconds=reader.number("seconds"),
            checks=int(reader.number("checks")),
            steps=tuple(_step(each) for each in reader.objects("steps")),
            violations=tuple(_violation(each) for each in reader.objects("violations")),
            # Results that an older version kept have none.
            measurements=tuple(
                map(_measurements, reader.objects("measurements") if "measurements" in document else ())
            ),
            directory=reader.text("directory"),
            reproduce=reader.text("reproduce"),
            failpoints={
                name: {point: int(_Reader(hits).number(point)) for point in hits}
                for name, hits in reader.mapping("failpoints").items()
                if isinstance(hits, Mapping)
            },
        )


class _Reader:
    """Values of a JSON object with their types checked."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document

    def text(self, key: str) -> str:
        value = self._document[key]
        if not isinstance(value, str):
            raise TypeError(f"{key} is not a text")
        return value

    def number(self, key: str) -> float:
        value = self._document[key]
        if not isinstance(value, int | float):
            raise TypeError(f"{key} is not a number")
        return value

    def mapping(self, key: str) -> Mapping[str, object]:
        value = self._document[key]
        if not isinstance(value, Mapping):
            raise TypeError(f"{key} is not an object")
        return value

    def objects(self, key: str) -> list[_Reader]:
        value = self._document[key]
        if not isinstance(value, list):
            raise TypeError(f"{key} is not a list")
        return [_Reader(each) for each in value if isinstance(each, Mapping)]

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._document[key]
        return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _step(reader: _Reader) -> StepResult:
    return StepResult(
        number=int(reader.number("number")),
        verb=reader.text("verb"),
        name=reader.text("name"),
        line=int(reader.number("line")),
        started=reader.number("startedSeconds"),
        seconds=reader.number("seconds"),
        outcome=Outcome(reader.text("outcome")),
        observation=reader.text("observation"),
    )


def _measurements(reader: _Reader) -> Measurements:
    return Measurements(variant=reader.mapping("variant"), values=reader.mapping("values"))


def _violation(reader: _Reader) -> Violation:
    return Violation(
        invariant=reader.text("invariant"),
        message=reader.text("message"),
        revisions=tuple(int(each) for each in reader.texts("revisions")),
        objects=reader.texts("objects"),
    )
