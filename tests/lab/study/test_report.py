"""The report: its summaries, its document, and the page made of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nominee.lab.study.pages.figures import figures
from nominee.lab.study.pages.page import page
from nominee.lab.study.pages.report import Report, ReportError, read
from nominee.lab.study.pages.tables import tables
from nominee.lab.study.results import Condition, Rate, Results, Setup, TrialResult
from nominee.lab.study.settings import NO_CRASH, Scenario
from nominee.lab.study.statistics import ratios, summarize
from nominee.scheduler.framework.api.deferred_resize import Fit, Tracking


def trial(
    scenario: Scenario,
    tracking: Tracking,
    seed: int,
    *,
    fit: Fit = Fit.SCHEDULER,
    point: str = "",
    redundant: int = 0,
    is_done: bool = True,
    nominations: tuple[str, ...] = ("",),
) -> tuple[Setup, TrialResult]:
    result = TrialResult(
        seed=seed,
        point=point,
        needed=1,
        evicted=1 + redundant,
        redundant=redundant,
        marked_only=0,
        resize_seconds=2.0 + seed if is_done else None,
        deferred_seconds=2.0 + seed,
        writes=4 + seed,
        nominations=nominations,
        nominated_seconds=0.0,
        falls_back=seed > 0,
    )
    return Setup(scenario=scenario, tracking=tracking, fit=fit), result


def rate(condition: Condition, seed: int, pods_per_second: float, fit: Fit) -> tuple[Setup, Rate]:
    one = Rate(seed=seed, condition=condition.value, pods_per_second=pods_per_second, cpu_ms=2.0)
    return Setup(scenario=Scenario.THROUGHPUT, tracking=Tracking.NONE, fit=fit), one


def report() -> Report:
    trials = [
        *(
            trial(Scenario.CRASH, tracking, seed, point=point)
            for tracking in Tracking
            for point in (NO_CRASH, "scheduler.cycle.before", "victims terminating")
            for seed in range(2)
        ),
        *(
            trial(Scenario.GRACE, tracking, seed, redundant=seed if tracking is Tracking.NONE else 0)
            for tracking in Tracking
            for seed in range(2)
        ),
        trial(Scenario.GRACE, Tracking.NONE, 2, is_done=False, nominations=("", "node-1", "")),
        *(
            trial(Scenario.FOUR_PODS, tracking, seed, fit=fit, redundant=2 if fit is Fit.SCHEDULER else 0)
            for tracking in Tracking
            for fit in Fit
            for seed in range(2)
        ),
    ]
    rates = [
        rate(condition, seed, speed + seed, fit)
        for fit in Fit
        for condition, speed in ((Condition.NONE, 200), (Condition.QUIET, 100), (Condition.CHURN, 50))
        for seed in range(2)
    ]
    return made(Results(trials, rates))


def made(results: Results, *, quick: bool = False) -> Report:
    return Report(version="1", seeds=2, quick=quick, machine={"cores": 2}, results=results)


def test_a_summary_has_the_spread() -> None:
    summary = summarize([3.0, 1.0, 2.0, 10.0])
    assert summary is not None
    assert summary.document == {"count": 4, "mean": 4.0, "min": 1.0, "median": 2.5, "p90": 10.0, "max": 10.0}
    assert summarize([]) is None


def test_ratios_are_by_seed() -> None:
    assert ratios([1.0, 3.0], [2.0, 4.0]) == [0.5, 0.75]
    with pytest.raises(ValueError, match="zip"):
        ratios([1.0], [1.0, 2.0])


def test_trials_are_grouped_by_scenario_option_fit_and_point() -> None:
    grace = [one for one in report().trials() if one.setup.scenario is Scenario.GRACE]
    none = next(one for one in grace if one.setup.tracking is Tracking.NONE)
    assert (none.trials, none.trials_with_redundant, none.not_resized, none.falls_back) == (3, 1, 1, 2)
    assert none.resize_seconds is not None
    assert none.resize_seconds.median == 2.5
    assert none.nominations == ("unset", "unset > own node > unset")


def test_throughput_is_related_to_the_same_seed_without_deferred_pods() -> None:
    rates = {(one.setup.fit, one.condition): one for one in report().rates()}
    assert rates[Fit.SCHEDULER, Condition.NONE.value].ratio.median == 1.0
    assert rates[Fit.KUBELET, Condition.QUIET.value].ratio.minimum == pytest.approx(0.5)


def test_a_report_is_read_again_as_it_was_written() -> None:
    text = json.dumps(report().document)
    assert json.loads(json.dumps(read(text).document)) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a ResizePreemptionStudy"),
        ('{"kind": "ResizePreemptionStudy", "apiVersion": "study.nominee.dev/v0"}', "apiVersion is 'study"),
        ('{"kind": "ResizePreemptionStudy", "apiVersion": "study.nominee.dev/v1"}', "nomineeVersion"),
    ],
)
def test_another_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ReportError, match=message):
        read(text)


def test_every_field_of_the_document_is_described() -> None:
    described = (Path(__file__).parents[3] / "docs/studies/README.md").read_text(encoding="utf-8")
    document = json.loads(json.dumps(report().document))
    keys = {*document, *document["trials"][0], *document["throughput"][0]}
    keys.update(*document["results"])
    assert sorted(key for key in keys if f"`{key}`" not in described) == []


def test_the_page_has_every_figure_with_its_command_and_no_script() -> None:
    text = page(report())
    for figure in figures(report()):
        assert f"<code>{figure.command}</code>" in text
    for table in tables(report()):
        assert len({len(table.columns), *(len(row) for row in table.rows)}) == 1
    assert text.count("<svg") == len(figures(report())) == 8
    assert "<script" not in text
    assert "$" not in text


@pytest.mark.parametrize("scenario", list(Scenario))
def test_a_part_of_the_scenarios_makes_a_page(scenario: Scenario) -> None:
    results = report().results
    part = Results(
        [one for one in results.trials if one[0].scenario is scenario],
        [one for one in results.rates if one[0].scenario is scenario],
    )
    assert "<svg" in page(made(part, quick=True))


def test_drawing_leaves_the_imports_of_other_modules_alone() -> None:
    """A finder without `find_spec` makes every import of an absent module warn, in this whole process."""
    page(report())
    assert all(hasattr(finder, "find_spec") for finder in sys.meta_path)
