"""The rows of the study's tables, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nominee.lab.study.pages.report import RateSummary, Report, TrialSummary
from nominee.lab.study.settings import Scenario
from nominee.lab.study.statistics import Summary

TITLES = {
    Scenario.CRASH: "Crashes of the scheduler",
    Scenario.GRACE: "Victims with long grace periods",
    Scenario.FOUR_PODS: "The four pods of “Risk of Additional Preemption”",
    Scenario.THROUGHPUT: "Deferred pods and throughput",
}
_TRIAL_COLUMNS = (
    "tracking",
    "fit",
    "point",
    "trials",
    "evicted",
    "redundant (max)",
    "trials with redundant",
    "resize s, median",
    "p90",
    "writes, median",
    "falls back",
    "nominatedNodeName",
)
_RATE_COLUMNS = (
    "tracking",
    "fit",
    "condition",
    "seeds",
    "pods/s, median",
    "min to max",
    "ratio, median",
    "CPU ms/pod, median",
    "CPU ratio, median",
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(report: Report) -> list[Table]:
    """Return a table for each scenario that the report has."""
    trials, rates = report.trials(), report.rates()
    found = []
    for scenario in (Scenario.CRASH, Scenario.GRACE, Scenario.FOUR_PODS):
        rows = [_trial_row(one) for one in trials if one.setup.scenario is scenario]
        if rows:
            found.append(Table(TITLES[scenario], _TRIAL_COLUMNS, rows))
    if rates:
        found.append(Table(TITLES[Scenario.THROUGHPUT], _RATE_COLUMNS, [_rate_row(one) for one in rates]))
    return found


def _trial_row(one: TrialSummary) -> list[str]:
    times = one.resize_seconds
    unfinished = f" ({one.not_resized} not done)" if one.not_resized else ""
    return [
        one.setup.tracking.value,
        one.setup.fit.value,
        one.point.removeprefix("scheduler."),
        str(one.trials),
        _number(one.evicted.mean),
        f"{_number(one.redundant.mean)} ({one.redundant.maximum:g})",
        str(one.trials_with_redundant),
        (f"{times.median:.1f}" if times else "-") + unfinished,
        f"{times.p90:.1f}" if times else "-",
        f"{one.writes.median:g}",
        f"{one.falls_back} of {one.trials}",
        "; ".join(one.nominations),
    ]


def _rate_row(one: RateSummary) -> list[str]:
    return [
        one.setup.tracking.value,
        one.setup.fit.value,
        one.condition,
        str(one.pods_per_second.count),
        f"{one.pods_per_second.median:.0f}",
        _range(one.pods_per_second),
        f"{one.ratio.median:.2f}",
        f"{one.cpu_ms.median:.2f}",
        f"{one.cpu_ratio.median:.2f}",
    ]


def _range(summary: Summary) -> str:
    return f"{summary.minimum:.0f} to {summary.maximum:.0f}"


def _number(value: float) -> str:
    return f"{value:.1f}"
