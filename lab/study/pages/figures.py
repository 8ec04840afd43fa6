"""The plots of the study as inline SVG, drawn by pygal (extra `study`).

A figure has panels. Each bar has its label under it, its 95% confidence interval as a line, and a colour:
that of an option for tracking, or grey.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pygal
from pygal.style import Style

from nominee.lab.study.pages.data import (
    OPTIONS,
    Data,
    before_deletion,
    between_deletions,
    is_early,
    is_race_c,
    is_redundant,
    ratios,
    share_of,
    wait_after_victim,
    while_terminating,
)
from nominee.lab.study.results import Row
from nominee.lab.study.settings import (
    AFTER_POLICY,
    AT_ONCE,
    CHURN,
    LATER,
    LIVE_READ,
    NEW_KUBELET,
    OLD_KUBELET,
    QUIET,
    SHIPPED,
    Scenario,
)
from nominee.lab.study.statistics import Estimate, median
from nominee.scheduler.framework.resize_preemption import Fit, Tracking

# pygal's finder of plugins has no find_spec, so each later import of an absent module would warn.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]

_DROPPED = re.compile(r"<script.*?</script>|<!--.*?-->", re.DOTALL)
"""The configuration of pygal's tooltips, which the page does not have, and comments with the date."""
_IDENTIFIER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
GREY = "#767676"
COLOURS = {
    Tracking.NONE: "#0072b2",
    Tracking.MEMORY: "#e69f00",
    Tracking.NOMINATED_NODE_NAME: "#009e73",
    Tracking.SPEC_NODE_NAME: "#cc79a7",
}
_INK = "#333"
_WIDTHS = {1: 700, 2: 520, 3: 420}
Bar = tuple[str, str, Estimate]
"""Label, colour, value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A part of a figure. `unit`: of the values; percentages are of shares."""

    title: str
    unit: str
    bars: Sequence[Bar]

    @property
    def top(self) -> float:
        """Return the highest end of an interval."""
        return max((bar[2].high for bar in self.bars), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Plots, their caption, and the scenario that they are made of."""

    title: str
    caption: str
    scenario: Scenario
    panels: Sequence[Panel]

    def svgs(self) -> list[str]:
        """Return a plot for each panel that has values; panels of one unit have one scale."""
        drawn = [panel for panel in self.panels if panel.bars]
        tops = {panel.unit: max(one.top for one in drawn if one.unit == panel.unit) or 1.0 for panel in drawn}
        return [_svg(panel, tops[panel.unit], _WIDTHS[min(len(drawn), 3)], self.title) for panel in drawn]


def _svg(panel: Panel, top: float, width: int, figure: str) -> str:
    style = Style(
        background="transparent",
        plot_background="transparent",
        foreground=_INK,
        foreground_strong=_INK,
        foreground_subtle=_INK,
        guide_stroke_color="#ddd",
        major_guide_stroke_color="#ccc",
        opacity="0.75",
        ci_colors=("#000",),
        font_family="sans-serif",
        label_font_size=13,
        major_label_font_size=13,
        title_font_size=14,
    )
    # Without `js` the page needs no script and no other site.
    chart = pygal.Bar(
        style=style,
        js=[],
        title=panel.title,
        y_title=panel.unit,
        width=width,
        height=320,
        show_legend=False,
        range=(0, top),
        truncate_label=-1,
        margin=12,
    )
    chart.x_labels = [label for label, _, _ in panel.bars]
    factor = 100 if panel.unit.startswith("%") else 1
    values = [
        {
            "value": factor * one.value,
            "ci": {"low": factor * one.low, "high": factor * one.high},
            "color": colour,
        }
        for _, colour, one in panel.bars
    ]
    chart.add(panel.unit, values)
    if factor != 1:
        chart.range = (0, min(factor * top, 100))
    text = _DROPPED.sub("", chart.render(is_unicode=True, disable_xml_declaration=True))
    # The same results make the same page.
    return _IDENTIFIER.sub(re.sub(r"\W+", "-", f"{figure} {panel.title}".lower()), text)


def figures(data: Data) -> list[Figure]:
    """Return the figures of the scenarios that were measured."""
    drawn = [draw(data) for draw in _FIGURES]
    return [each for each in drawn if any(one.bars for one in each.panels)]


def _by_option(
    data: Data,
    scenario: Scenario,
    of: Callable[[Sequence[Row]], Estimate],
    keep: Callable[[Row], bool] = lambda _: True,
    variant: str = "",
) -> list[Bar]:
    """Return a bar for each option that has rows."""
    found = ((one, data.rows(scenario, one, variant, keep)) for one in Tracking)
    return [(OPTIONS[one], COLOURS[one], of(rows)) for one, rows in found if rows]


def _grey(label: str, rows: Sequence[Row], of: Callable[[Sequence[Row]], Estimate]) -> list[Bar]:
    """Return a bar that is not of an option for tracking; [] without rows."""
    return [(label, GREY, of(rows))] if rows else []


def _redundant(rows: Sequence[Row]) -> Estimate:
    return share_of(rows, is_redundant)


def _median(name: str) -> Callable[[Sequence[Row]], Estimate]:
    return lambda rows: median([row[name] for row in rows if row[name] is not None])


_TRIALS_UNIT = "% of trials with redundant victims"


def _crash(data: Data) -> Figure:
    def panel(title: str, keep: Callable[[Row], bool]) -> Panel:
        bars = _by_option(data, Scenario.CRASH, _redundant, keep)
        return Panel(title=title, unit=_TRIALS_UNIT, bars=bars)

    return Figure(
        title="Redundant victims after a crash of the scheduler",
        caption="Trials in which more pods were evicted than one undisturbed preemption evicts, by the "
        "moment of the crash. In half of the trials another pod of the node is deleted before the scheduler "
        "starts.",
        scenario=Scenario.CRASH,
        panels=[
            panel("killed before a deletion", before_deletion),
            panel("killed after the first deletion", between_deletions),
            panel("killed while victims terminate", while_terminating),
        ],
    )


def _costs(data: Data) -> Figure:
    seconds = _by_option(data, Scenario.CRASH, _median("resizeSeconds"), between_deletions)
    return Figure(
        title="The cost of the options",
        caption="Medians: the time from the request to the end of the resize if the scheduler is killed "
        "after its first deletion, and what the scheduler writes for one resize with long grace periods "
        "(marks, deletions, nominatedNodeName, Events).",
        scenario=Scenario.CRASH,
        panels=[
            Panel(title="time to resize after a crash", unit="seconds (median)", bars=seconds),
            Panel(
                title="writes of the scheduler",
                unit="writes (median)",
                bars=_by_option(data, Scenario.GRACE, _median("writes")),
            ),
        ],
    )


def _grace(data: Data) -> Figure:
    return Figure(
        title="Long grace periods, no crash",
        caption="“Redundant victims”: trials that have them, when two other pods of the node are deleted "
        "while the victims terminate. “Fallbacks”: trials in which the resize was Deferred for longer than "
        "an autoscaler's fallback time.",
        scenario=Scenario.GRACE,
        panels=[
            Panel(
                title="redundant victims",
                unit=_TRIALS_UNIT,
                bars=_by_option(data, Scenario.GRACE, _redundant),
            ),
            Panel(
                title="fallbacks",
                unit="% of trials that fall back",
                bars=_by_option(
                    data, Scenario.GRACE, lambda rows: share_of(rows, lambda row: bool(row["fallsBack"]))
                ),
            ),
        ],
    )


def _four_pods(data: Data) -> Figure:
    bars = [
        bar
        for fit in (Fit.SCHEDULER, Fit.KUBELET)
        for bar in _grey(
            f"--resize-fit={fit.value}", data.rows(Scenario.FOUR_PODS, fit=fit), _median("evicted")
        )
    ]
    return Figure(
        title="The four pods of “Risk of Additional Preemption”",
        caption="Evicted pods; one has to go.",
        scenario=Scenario.FOUR_PODS,
        panels=[Panel(title="evicted pods", unit="pods (median)", bars=bars)],
    )


def _races(data: Data) -> Figure:
    def race_c(rows: Sequence[Row]) -> Estimate:
        return share_of(rows, is_race_c)

    def wait(rows: Sequence[Row]) -> Estimate:
        return median([wait_after_victim(row) for row in rows])

    def done_in_race_c(row: Row) -> bool:
        return row["resizeSeconds"] is not None and is_race_c(row) and is_early(row)

    def panel(
        title: str, unit: str, of: Callable[[Sequence[Row]], Estimate], keep: Callable[[Row], bool]
    ) -> Panel:
        shipped = data.rows(Scenario.RACES, variant=SHIPPED, keep=keep)
        bars = _by_option(data, Scenario.RACES, of, keep) + _grey("1.37", shipped, of)
        return Panel(title=title, unit=unit, bars=bars)

    unit = "% of trials with race C"
    return Figure(
        title="Race A and race C",
        caption="Pod A's preemption makes room, and pod C of higher priority asks for room, too: while the "
        "victim terminates, or within 10 ms of its end. Race A: A is resized first; race C: C is. “A's "
        "further wait in race C” begins at the end of A's victim; C asked while that terminated. Options "
        "follow the KEP's text; “1.37” is what Kubernetes shipped, with Option 1.",
        scenario=Scenario.RACES,
        panels=[
            panel("C asks while the victim terminates", unit, race_c, is_early),
            panel("C asks at the victim's end", unit, race_c, lambda row: not is_early(row)),
            panel("A's further wait in race C", "seconds (median)", wait, done_in_race_c),
        ],
    )


def _kubelet(data: Data) -> Figure:
    bars = _grey("kubelet alone", data.rows(Scenario.KUBELET, variant=AT_ONCE), _redundant)
    return Figure(
        title="Kubelet and scheduler preempt for the same resize",
        caption="A critical pod's resize is Deferred because of the node's policy; the policy is removed, "
        "and both preempt. “Kubelet alone”: the node has no policy, and the kubelet preempts at the request.",
        scenario=Scenario.KUBELET,
        panels=[
            Panel(
                title="more victims than needed",
                unit=_TRIALS_UNIT,
                bars=[*bars, *_by_option(data, Scenario.KUBELET, _redundant, variant=AFTER_POLICY)],
            )
        ],
    )


def _policy_lag(data: Data) -> Figure:
    labels = {
        OLD_KUBELET: "kubelet N-3",
        next(iter(LATER)): "N-3, 20 ms later",
        LIVE_READ: "N-3, live read",
        NEW_KUBELET: "new kubelet",
    }
    bars = [
        bar
        for variant, label in labels.items()
        for bar in _grey(
            label,
            data.rows(Scenario.POLICY_LAG, variant=variant),
            lambda rows: share_of(rows, lambda row: bool(row["evicted"])),
        )
    ]
    return Figure(
        title="Evictions in spite of the stored policy",
        caption="The resize is requested when the write of the node's policy was answered, or 20 ms later. "
        "“Live read”: the scheduler reads the node from the API server before it evicts.",
        scenario=Scenario.POLICY_LAG,
        panels=[Panel(title="evicted in spite of the policy", unit="% of trials", bars=bars)],
    )


def _throughput(data: Data) -> Figure:
    def panel(title: str, column: str) -> Panel:
        loads = {"beside deferred pods": QUIET, "and deletions": CHURN}
        found = {label: ratios(data, load, column) for label, load in loads.items()}
        bars = [(label, GREY, median(values)) for label, values in found.items() if values]
        return Panel(title=title, unit="ratio to no deferred pods (median)", bars=bars)

    return Figure(
        title="New pods beside 1,000 deferred pods",
        caption="Real processes, all options together. “Deletions”: 20 small pods a second are deleted on "
        "the nodes of the deferred pods. A line that crosses 1 is no difference.",
        scenario=Scenario.THROUGHPUT,
        panels=[
            panel("throughput for new pods", "podsPerSecond"),
            panel("scheduler's processor time for a new pod", "cpuMilliseconds"),
        ],
    )


_FIGURES = (_crash, _grace, _costs, _races, _kubelet, _policy_lag, _four_pods, _throughput)
