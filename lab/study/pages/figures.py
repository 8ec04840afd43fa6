"""The plots of the study as inline SVG, drawn by pygal (extra `study`)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pygal
from pygal.style import Style

from nominee.lab.study.pages.report import RateSummary, Report, TrialSummary
from nominee.lab.study.results import Condition, TrialResult
from nominee.lab.study.settings import CRASH_POINTS, NO_CRASH, Scenario
from nominee.lab.study.statistics import Summary
from nominee.scheduler.framework.api.deferred_resize import Fit, Tracking

# pygal's finder of plugins has no find_spec, so each later import of an absent module would warn.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]

_SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
"""The configuration of pygal's tooltips, which the page does not have."""
_COMMAND = "nominee study resize-preemption"
_STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground="#444",
    foreground_strong="#222",
    foreground_subtle="#888",
    guide_stroke_color="#ddd",
    major_guide_stroke_color="#bbb",
    colors=("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    font_family="sans-serif",
    label_font_size=12,
    major_label_font_size=12,
    legend_font_size=12,
    title_font_size=14,
    value_font_size=11,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot, what it shows, and the command that measures it again."""

    title: str
    caption: str
    command: str
    svg: str


def figures(report: Report) -> list[Figure]:
    """Return the figures of the scenarios that the report has."""
    trials, rates = report.trials(), report.rates()
    scenarios = {one.setup.scenario for one in trials}
    drawn: list[Figure] = []
    if Scenario.CRASH in scenarios:
        crash = [one for one in trials if one.setup.scenario is Scenario.CRASH]
        drawn += [_crash_redundant(crash, report), _times(report, Scenario.CRASH, "a crash")]
    if Scenario.GRACE in scenarios:
        grace = [one for one in trials if one.setup.scenario is Scenario.GRACE]
        drawn += [
            _grace_redundant(grace, report),
            _times(report, Scenario.GRACE, "long grace periods"),
            _writes(report),
        ]
    if Scenario.FOUR_PODS in scenarios:
        drawn.append(_four_pods([one for one in trials if one.setup.scenario is Scenario.FOUR_PODS], report))
    if rates:
        drawn += [
            _rates(rates, report, "Throughput for new pods", "pods per second", _throughput),
            _rates(rates, report, "Processor time of the scheduler for a new pod", "milliseconds", _cpu),
        ]
    return drawn


def _command(report: Report, scenario: Scenario) -> str:
    quick = " --quick" if report.quick else ""
    return f"{_COMMAND} --scenario {scenario.value} --seeds {report.seeds}{quick}"


def _render(chart: pygal.Graph) -> str:
    text: str = chart.render(is_unicode=True, disable_xml_declaration=True)
    return _SCRIPT.sub("", text)


def _options(y_title: str) -> dict[str, object]:
    # Without `js` the page needs no script and no other site.
    return {
        "style": _STYLE,
        "js": [],
        "y_title": y_title,
        "width": 900,
        "height": 380,
        "legend_at_bottom": True,
        "legend_at_bottom_columns": 4,
        "truncate_legend": -1,
        "x_label_rotation": 15,
        "print_values": False,
        "show_title": False,
    }


def _present(trials: Sequence[TrialSummary]) -> list[Tracking]:
    return [one for one in Tracking if any(trial.setup.tracking is one for trial in trials)]


def _crash_redundant(trials: Sequence[TrialSummary], report: Report) -> Figure:
    by_point = {(one.setup.tracking, one.point): one for one in trials}
    points = [point for point in CRASH_POINTS if any(one.point == point for one in trials)]
    chart = pygal.Bar(**_options("trials with redundant victims (%)"), range=(0, 100))
    chart.x_labels = [point.removeprefix("scheduler.") for point in points]
    for tracking in _present(trials):
        values = []
        for point in points:
            found = by_point.get((tracking, point))
            values.append(None if found is None else 100 * found.trials_with_redundant / found.trials)
        chart.add(tracking.value, values)
    return Figure(
        title="Redundant victims after a crash of the scheduler",
        caption="The share of trials in which more pods were evicted than one undisturbed preemption evicts, "
        "by the point at which the scheduler was killed. A gap is a point that is not on the option's path.",
        command=_command(report, Scenario.CRASH),
        svg=_render(chart),
    )


def _grace_redundant(trials: Sequence[TrialSummary], report: Report) -> Figure:
    grace = [
        (setup.tracking, trial.redundant)
        for setup, trial in report.results.trials
        if setup.scenario is Scenario.GRACE
    ]
    counts = sorted({count for _, count in grace} | {0, 1})
    chart = pygal.StackedBar(**_options("trials"))
    chart.x_labels = [one.value for one in _present(trials)]
    for count in counts:
        chart.add(f"{count} redundant", [grace.count((one, count)) for one in _present(trials)])
    return Figure(
        title="Redundant victims with long grace periods",
        caption="The number of trials with so many redundant victims. While the victims terminated, two "
        "other pods of the node were deleted.",
        command=_command(report, Scenario.GRACE),
        svg=_render(chart),
    )


def _box(report: Report, scenario: Scenario, of: Callable[[TrialResult], float | None], y_title: str) -> str:
    chart = pygal.Box(**_options(y_title), box_mode="extremes")
    for tracking in Tracking:
        values = [
            of(trial)
            for setup, trial in report.results.trials
            if (setup.scenario, setup.tracking) == (scenario, tracking) and trial.point != NO_CRASH
        ]
        if any(value is not None for value in values):
            chart.add(tracking.value, [value for value in values if value is not None])
    return _render(chart)


def _times(report: Report, scenario: Scenario, what: str) -> Figure:
    return Figure(
        title=f"Time to resize with {what}",
        caption="Seconds from the request to the end of the resize: minimum, quartiles and maximum over the "
        "trials of all seeds.",
        command=_command(report, scenario),
        svg=_box(report, scenario, lambda trial: trial.resize_seconds, "seconds"),
    )


def _writes(report: Report) -> Figure:
    return Figure(
        title="API writes of the scheduler for one resize",
        caption="Marks (DisruptionTarget), deletions, writes of nominatedNodeName and Events, with long "
        "grace periods: minimum, quartiles and maximum over the seeds.",
        command=_command(report, Scenario.GRACE),
        svg=_box(report, Scenario.GRACE, lambda trial: trial.writes, "writes"),
    )


def _four_pods(trials: Sequence[TrialSummary], report: Report) -> Figure:
    chart = pygal.Bar(**{**_options("evicted pods (mean)"), "print_values": True})
    chart.x_labels = [one.value for one in _present(trials)]
    evicted: Mapping[tuple[Tracking, Fit], float] = {
        (one.setup.tracking, one.setup.fit): one.evicted.mean for one in trials
    }
    for fit in (Fit.SCHEDULER, Fit.KUBELET):
        chart.add(f"--resize-fit={fit.value}", [evicted.get((one, fit)) for one in _present(trials)])
    return Figure(
        title="The four pods of “Risk of Additional Preemption”",
        caption="Evicted pods of low priority; one has to go. X is drawn from the seed.",
        command=_command(report, Scenario.FOUR_PODS),
        svg=_render(chart),
    )


def _throughput(one: RateSummary) -> Summary:
    return one.pods_per_second


def _cpu(one: RateSummary) -> Summary:
    return one.cpu_ms


def _with_spread(summary: Summary) -> dict[str, object]:
    return {"value": summary.median, "ci": {"low": summary.minimum, "high": summary.maximum}}


def _rates(
    rates: Sequence[RateSummary],
    report: Report,
    title: str,
    y_title: str,
    of: Callable[[RateSummary], Summary],
) -> Figure:
    setups = list(dict.fromkeys(one.setup for one in rates))
    highest = max(of(one).maximum for one in rates)
    chart = pygal.Bar(**_options(y_title + " (median)"), range=(0, highest))
    chart.x_labels = [
        setup.tracking.value + ("" if setup.fit is Fit.SCHEDULER else ", fit=kubelet") for setup in setups
    ]
    for condition in Condition:
        found = {one.setup: one for one in rates if one.condition == condition.value}
        chart.add(condition.value, [_with_spread(of(found[setup])) for setup in setups])
    return Figure(
        title=title,
        caption="The median over the seeds; the lines are minimum and maximum. “Deletions” are 20 small pods "
        "a second on the nodes of the deferred pods.",
        command=_command(report, Scenario.THROUGHPUT),
        svg=_render(chart),
    )
