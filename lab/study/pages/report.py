"""The document that `nominee study resize-preemption -o json` prints: results, and their summaries.

The format is versioned: docs/studies/README.md describes each field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nominee.lab.study.results import BASELINE, Rate, Results, Setup, TrialResult, decode
from nominee.lab.study.statistics import Summary, ratios, summarize

API_VERSION = "study.nominee.dev/v1"
KIND = "ResizePreemptionStudy"


class ReportError(ValueError):
    """A file is no report of this version; the message names what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSummary:
    """The trials of one scenario, configuration and point, over all seeds; times in seconds."""

    setup: Setup
    point: str
    trials: int
    evicted: Summary
    redundant: Summary
    trials_with_redundant: int
    marked_only: int
    resize_seconds: Summary | None
    not_resized: int
    writes: Summary
    falls_back: int
    nominations: tuple[str, ...]
    nominated_seconds: Summary

    @property
    def document(self) -> dict[str, object]:
        """Return the JSON document (docs/studies/README.md)."""
        return {
            **self.setup.document,
            "point": self.point,
            "trials": self.trials,
            "evicted": self.evicted.document,
            "redundantVictims": self.redundant.document,
            "trialsWithRedundantVictims": self.trials_with_redundant,
            "markedOnly": self.marked_only,
            "resizeSeconds": self.resize_seconds.document if self.resize_seconds else None,
            "notResized": self.not_resized,
            "schedulerWrites": self.writes.document,
            "fallsBack": self.falls_back,
            "nominatedNodeName": list(self.nominations),
            "nominatedSeconds": self.nominated_seconds.document,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSummary:
    """The throughput for new pods in one configuration and condition, over all seeds."""

    setup: Setup
    condition: str
    pods_per_second: Summary
    ratio: Summary
    """To the throughput of the same seed without deferred pods."""
    cpu_ms: Summary
    """The scheduler's processor time for each new pod, in milliseconds."""
    cpu_ratio: Summary

    @property
    def document(self) -> dict[str, object]:
        """Return the JSON document (docs/studies/README.md)."""
        return {
            **self.setup.document,
            "condition": self.condition,
            "podsPerSecond": self.pods_per_second.document,
            "ratio": self.ratio.document,
            "schedulerCPUMillisecondsPerPod": self.cpu_ms.document,
            "schedulerCPURatio": self.cpu_ratio.document,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All results of one run, with the version and the machine."""

    version: str
    seeds: int
    quick: bool
    machine: Mapping[str, object]
    results: Results

    @property
    def document(self) -> dict[str, object]:
        """Return the JSON document (docs/studies/README.md)."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "nomineeVersion": self.version,
            "seeds": self.seeds,
            "quick": self.quick,
            "machine": dict(self.machine),
            "trials": [one.document for one in self.trials()],
            "throughput": [one.document for one in self.rates()],
            "results": self.results.documents,
        }

    def trials(self) -> list[TrialSummary]:
        """Return the summaries of the scenarios with trials, in the order of measurement."""
        groups: dict[tuple[Setup, str], list[TrialResult]] = {}
        for setup, trial in self.results.trials:
            groups.setdefault((setup, trial.point), []).append(trial)
        return [_summarize(setup, point, trials) for (setup, point), trials in groups.items()]

    def rates(self) -> list[RateSummary]:
        """Return the summaries of the throughput scenario, in the order of measurement."""
        groups: dict[tuple[Setup, str], list[Rate]] = {}
        for setup, rate in self.results.rates:
            groups.setdefault((setup, rate.condition), []).append(rate)
        return [
            _summarize_rates(setup, condition, rates, groups[setup, BASELINE])
            for (setup, condition), rates in groups.items()
        ]


def read(text: str) -> Report:
    """Read a report that `-o json` printed.

    Raises:
        ReportError: the text is no such document, or of another version.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReportError(f"not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ReportError(f"not a {KIND}")
    if document.get("apiVersion") != API_VERSION:
        raise ReportError(f"apiVersion is {document.get('apiVersion')!r}; this command reads {API_VERSION}")
    try:
        report = Report(
            version=document["nomineeVersion"],
            seeds=document["seeds"],
            quick=document["quick"],
            machine=document["machine"],
            results=decode(document["results"]),
        )
        report.rates()  # it needs the measurements without deferred pods
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(f"a field is missing or wrong: {error}") from None
    return report


def _sum_up(values: Iterable[float]) -> Summary:
    summary = summarize(list(values))
    assert summary is not None  # a group has at least one result
    return summary


def _summarize(setup: Setup, point: str, trials: Sequence[TrialResult]) -> TrialSummary:
    return TrialSummary(
        setup=setup,
        point=point,
        trials=len(trials),
        evicted=_sum_up(trial.evicted for trial in trials),
        redundant=_sum_up(trial.redundant for trial in trials),
        trials_with_redundant=sum(trial.redundant > 0 for trial in trials),
        marked_only=sum(trial.marked_only for trial in trials),
        resize_seconds=summarize([t.resize_seconds for t in trials if t.resize_seconds is not None]),
        not_resized=sum(trial.resize_seconds is None for trial in trials),
        writes=_sum_up(trial.writes for trial in trials),
        falls_back=sum(trial.falls_back for trial in trials),
        nominations=tuple(sorted({" > ".join(map(_shown, trial.nominations)) for trial in trials})),
        nominated_seconds=_sum_up(trial.nominated_seconds for trial in trials),
    )


def _shown(nominated: str) -> str:
    return "own node" if nominated else "unset"


def _summarize_rates(
    setup: Setup, condition: str, rates: Sequence[Rate], base: Sequence[Rate]
) -> RateSummary:
    return RateSummary(
        setup=setup,
        condition=condition,
        pods_per_second=_sum_up(rate.pods_per_second for rate in rates),
        ratio=_sum_up(ratios([r.pods_per_second for r in rates], [b.pods_per_second for b in base])),
        cpu_ms=_sum_up(rate.cpu_ms for rate in rates),
        cpu_ratio=_sum_up(ratios([r.cpu_ms for r in rates], [b.cpu_ms for b in base])),
    )
