"""The rows of a study by setup, and the estimates that tables, figures and answers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.lab.study.results import Row, Run
from nominee.lab.study.settings import NO_LOAD, VICTIMS_TERMINATING, Scenario, Setup
from nominee.lab.study.statistics import Estimate, median, share
from nominee.scheduler.framework.resize_preemption import Fit, Tracking

OPTIONS: Final = {
    Tracking.NONE: "Option 1",
    Tracking.MEMORY: "Option 2",
    Tracking.NOMINATED_NODE_NAME: "Option 3",
    Tracking.SPEC_NODE_NAME: "Option 4",
}
Keep = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of all runs."""

    by_setup: Mapping[Setup, Sequence[Row]]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Data:
        """Return the rows of some runs; of a setup that two have, those of the later one."""
        return cls({setup: rows for run in runs for setup, rows in run.rows.items()})

    def rows(
        self,
        scenario: Scenario,
        tracking: Tracking = Tracking.NONE,
        variant: str = "",
        keep: Keep = lambda _: True,
        fit: Fit = Fit.SCHEDULER,
    ) -> list[Row]:
        """Return the rows of a setup, [] if it was not measured."""
        setup = Setup(scenario=scenario, tracking=tracking, fit=fit, variant=variant)
        return [row for row in self.by_setup.get(setup, ()) if keep(row)]

    def has(self, scenario: Scenario) -> bool:
        """Return whether something of a scenario was measured."""
        return any(setup.scenario is scenario for setup in self.by_setup)


def before_deletion(row: Row) -> bool:
    """Return whether the scheduler was killed before its first deletion."""
    return not between_deletions(row) and not while_terminating(row)


def between_deletions(row: Row) -> bool:
    """Return whether the scheduler was killed after its first deletion, which may be the last."""
    return bool(row["point"] == "scheduler.preempt.victim.after")


def while_terminating(row: Row) -> bool:
    """Return whether the scheduler was killed while victims terminated."""
    return bool(row["point"] == VICTIMS_TERMINATING)


def is_early(row: Row) -> bool:
    """Return whether C's request came while the victim terminated, and not at about its end."""
    return bool(row["delay"] < row["stop"] / 1000 - 0.02)


def is_race_c(row: Row) -> bool:
    """Return whether C was resized before A."""
    return row["resizeSeconds"] is None or bool(row["otherSeconds"] < row["resizeSeconds"])


def is_stuck(row: Row) -> bool:
    """Return whether the resize was not done within 30 s."""
    return row["resizeSeconds"] is None


def wait_after_victim(row: Row) -> float:
    """Return the seconds from the end of the first victim until A was resized."""
    return float(row["resizeSeconds"] - row["stop"] / 1000)


def share_of(rows: Sequence[Row], test: Keep) -> Estimate:
    """Return the share of at least one row."""
    return share(sum(map(test, rows)), len(rows))


def is_redundant(row: Row) -> bool:
    """Return whether more pods were evicted than one undisturbed preemption evicts."""
    return bool(row["redundant"])


def paired(first: Sequence[Row], second: Sequence[Row], of: Callable[[Row], float]) -> Estimate | None:
    """Return the median growth of a value from the first rows to the second, by seed; None without pairs."""
    base = {row["seed"]: row for row in first}
    pairs = [(base[row["seed"]], row) for row in second if row["seed"] in base]
    pairs = [(a, b) for a, b in pairs if a["resizeSeconds"] is not None and b["resizeSeconds"] is not None]
    return median([of(b) - of(a) for a, b in pairs]) if pairs else None


def ratios(data: Data, load: str, column: str) -> list[float]:
    """Return the ratios of a column with a load to the same seed and setup without load, of all setups."""
    found = []
    for setup, rows in data.by_setup.items():
        if setup.scenario is Scenario.THROUGHPUT and setup.variant == load:
            base = data.rows(setup.scenario, setup.tracking, NO_LOAD, fit=setup.fit)
            found += [row[column] / other[column] for row, other in zip(rows, base, strict=True)]
    return found
