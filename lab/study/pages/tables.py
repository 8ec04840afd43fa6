"""The tables of the study, for the terminal and for the page: the measurements of each setup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nominee.lab.study.pages.data import OPTIONS, Data, Keep, is_redundant, share_of
from nominee.lab.study.results import Row
from nominee.lab.study.settings import Scenario, Setup
from nominee.lab.study.statistics import Estimate, median
from nominee.scheduler.framework.resize_preemption import Fit

_TITLES = {
    Scenario.CRASH: "Crashes of the scheduler",
    Scenario.GRACE: "Victims with long grace periods",
    Scenario.RACES: "Race A and race C",
    Scenario.KUBELET: "Kubelet and scheduler preempt",
    Scenario.POLICY_LAG: "A policy that was just stored",
    Scenario.FOUR_PODS: "The four pods of “Risk of Additional Preemption”",
    Scenario.THROUGHPUT: "New pods beside deferred pods",
}
_SHARES: dict[str, tuple[str, Keep]] = {
    "redundant victims": ("redundant", is_redundant),
    "evicted by the kubelet": ("byKubelet", lambda row: bool(row["byKubelet"])),
    "marked, not evicted": ("markedOnly", lambda row: row["markedOnly"] > 0),
    "falls back": ("fallsBack", lambda row: bool(row["fallsBack"])),
}
_MEDIANS = {
    "time to resize": ("resizeSeconds", " s"),
    "writes": ("writes", ""),
    "new pods": ("podsPerSecond", " /s"),
    "processor time": ("cpuMilliseconds", " ms"),
}
Cell = Callable[[Setup, Sequence[Row]], str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def percent(one: Estimate) -> str:
    """Return a share with its interval."""
    return f"{_percent(one.value)} ({_percent(one.low)} to {_percent(one.high)})"


def _percent(part: float) -> str:
    digits = 0 if part in (0, 1) or part >= 0.1 else 1 if part >= 0.001 else 2
    return f"{100 * part:.{digits}f}%"


def number(one: Estimate, unit: str = "") -> str:
    """Return a median with its interval."""
    if one.low == one.high:
        return f"{one.value:.3g}{unit}"
    return f"{one.value:.3g}{unit} ({one.low:.3g} to {one.high:.3g})"


def tables(data: Data) -> list[Table]:
    """Return a table for each scenario that was measured."""
    return [_table(data, scenario) for scenario in Scenario if data.has(scenario)]


def _table(data: Data, scenario: Scenario) -> Table:
    setups = {setup: rows for setup, rows in data.by_setup.items() if setup.scenario is scenario}
    names = set(next(iter(setups.values()))[0])
    columns: dict[str, Cell] = {
        "option": lambda setup, _: OPTIONS[setup.tracking],
        "setup": lambda setup, _: setup.variant or f"--resize-fit={setup.fit.value}",
        "trials": lambda _, rows: str(len(rows)),
    }
    if scenario is Scenario.THROUGHPUT:
        columns["setup"] = lambda setup, _: (
            setup.variant + ("" if setup.fit is Fit.SCHEDULER else f", --resize-fit={setup.fit.value}")
        )
    elif not any(setup.variant or setup.fit is not Fit.SCHEDULER for setup in setups):
        del columns["setup"]
    if "evicted" in names:
        columns["evicted, mean"] = lambda _, rows: f"{sum(row['evicted'] for row in rows) / len(rows):.2f}"
    if scenario is Scenario.POLICY_LAG:
        columns["evicted"] = _share(lambda row: bool(row["evicted"]))
    for title, (name, test) in _SHARES.items():
        if name in names:
            columns[title] = _share(test)
    for title, (name, unit) in _MEDIANS.items():
        if name in names:
            columns[title] = _median(name, unit)
    shown = [[of(setup, rows) for of in columns.values()] for setup, rows in setups.items()]
    return Table(_TITLES[scenario], list(columns), shown)


def _share(test: Keep) -> Cell:
    """Return the function of a cell with the share of trials for which a test holds."""
    return lambda _, rows: percent(share_of(rows, test))


def _median(name: str, unit: str) -> Cell:
    """Return the function of a cell with the median of a column."""

    def cell(_: Setup, rows: Sequence[Row]) -> str:
        values = [row[name] for row in rows if row[name] is not None]
        missing = f"; {len(rows) - len(values)} not done" if len(values) < len(rows) else ""
        return (number(median(values), unit) if values else "-") + missing

    return cell
