"""The results of the runs with their configurations, as values and as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TypeVar

from nominee.lab.study.observation import TrialResult
from nominee.lab.study.settings import Fit, Scenario, Tracking
from nominee.lab.study.throughput_results import Rate

T = TypeVar("T")


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
