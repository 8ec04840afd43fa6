"""The results of the runs with their configurations, as values and as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import TypeVar

from nominee.lab.study.plans import Plan
from nominee.lab.study.settings import Scenario
from nominee.machinery.wire.values.scalars import Json
from nominee.scheduler.framework.api.deferred_resize import Fit, Tracking

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of one trial; times in seconds."""

    seed: int
    point: str
    needed: int
    evicted: int
    redundant: int
    marked_only: int
    """Pods that keep the DisruptionTarget condition although they are not evicted."""
    resize_seconds: float | None
    deferred_seconds: float
    writes: int
    """Marks, deletions and nominations that the scheduler wrote, and its Events."""
    nominations: tuple[str, ...]
    """The values of the resized pod's nominatedNodeName over time, without repetitions; "" is unset."""
    nominated_seconds: float
    falls_back: bool
    """Whether the resize was Deferred for longer than the autoscaler's fallback time."""

    @classmethod
    def of(cls, plan: Plan, point: str, measured: Mapping[str, Json], fallback_seconds: float) -> TrialResult:
        """Return the result of a trial of which these values were measured (`scenarios/trial.yml`)."""
        evicted, marked, nominations = measured["evicted"], measured["marked"], measured["nominations"]
        changes = len(nominations) - 1 + bool(nominations and nominations[0])
        return cls(
            seed=plan.seed,
            point=point,
            needed=plan.needed,
            evicted=evicted,
            redundant=max(evicted - plan.needed, 0),
            marked_only=marked - evicted,
            resize_seconds=measured["resizeSeconds"],
            deferred_seconds=measured["deferredSeconds"],
            writes=marked + evicted + max(changes, 0) + measured["events"],
            nominations=tuple(nominations),
            nominated_seconds=measured["nominatedSeconds"],
            falls_back=measured["deferredSeconds"] > fallback_seconds,
        )


class Condition(StrEnum):
    """The load beside the new pods, while throughput is measured."""

    NONE = "no deferred pods"
    QUIET = "deferred pods"
    CHURN = "deferred pods, deletions on their nodes"


BASELINE = Condition.NONE.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One measurement; `cpu_ms` is the scheduler's processor time for each new pod in milliseconds."""

    seed: int
    condition: str
    pods_per_second: float
    cpu_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The configuration of the scheduler in a measurement."""

    scenario: Scenario
    tracking: Tracking
    fit: Fit

    @property
    def document(self) -> dict[str, object]:
        return {"scenario": self.scenario.value, "tracking": self.tracking.value, "fit": self.fit.value}


@dataclass(frozen=True, slots=True)
class Results:
    """Every trial and every measurement of the throughput, in the order of measurement."""

    trials: Sequence[tuple[Setup, TrialResult]] = ()
    rates: Sequence[tuple[Setup, Rate]] = ()

    @property
    def documents(self) -> list[dict[str, object]]:
        return [
            *({**setup.document, **asdict(trial)} for setup, trial in self.trials),
            *({**setup.document, **asdict(rate)} for setup, rate in self.rates),
        ]


def decode(documents: Sequence[Mapping[str, object]]) -> Results:
    """Read documents that `Results.documents` made, also after a round trip through JSON.

    Raises:
        KeyError, TypeError, ValueError: a document is invalid.
    """
    trials, rates = [], []
    for document in documents:
        setup = Setup(
            scenario=Scenario(str(document["scenario"])),
            tracking=Tracking(str(document["tracking"])),
            fit=Fit(str(document["fit"])),
        )
        if setup.scenario is Scenario.THROUGHPUT:
            rates.append((setup, _make(Rate, [field.name for field in fields(Rate)], document)))
        else:
            trial = _make(TrialResult, [field.name for field in fields(TrialResult)], document)
            trials.append((setup, trial))
    return Results(trials, rates)


def _make(cls: Callable[..., T], names: Sequence[str], document: Mapping[str, object]) -> T:
    values = {name: document[name] for name in names}
    return cls(**{name: tuple(one) if isinstance(one, list) else one for name, one in values.items()})
