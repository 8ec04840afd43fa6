"""The static HTML page of the study: answers, open ends, figures, tables, method."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nominee.lab.reports import html
from nominee.lab.reports.html import paragraphs, table
from nominee.lab.study.pages.answers import answers
from nominee.lab.study.pages.data import OPTIONS, Data
from nominee.lab.study.pages.figures import COLOURS, GREY, Figure, figures
from nominee.lab.study.pages.tables import tables
from nominee.lab.study.results import Run
from nominee.lab.study.settings import CRASH_STOP_SECONDS, FALLBACK_SECONDS, NODE_CPU, Scenario

_TITLE = "KEP-5836: the open questions, measured"
_COMMAND = "nominee study resize-preemption"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem }
body { color: #222; background: #fff }
figure { margin: 2rem 0; border-top: 1px solid #ccc; padding-top: 1rem }
figure div { display: flex; flex-wrap: wrap; gap: 0.5rem; background: #fff }
figure svg { height: auto; max-width: 100% }
figcaption { font-size: 0.9rem }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0 }
th, td { border: 1px solid #ccc; padding: 0.3rem 0.5rem; text-align: left; vertical-align: top }
.wide { overflow-x: auto }
.answers td:nth-child(1) { width: 18% } .answers td:nth-child(2) { width: 42% }
.key span { display: inline-block; width: 0.9rem; height: 0.9rem; margin: 0 0.3rem 0 1rem }
code { background: #f2f2f2; padding: 0 0.2rem }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117 }
  code { background: #262d36 }
  figure, th, td { border-color: #3a434e }
}
"""
_NOT_MEASURED = (
    "Kubernetes' own processes: everything here is emulated. A behaviour follows Kubernetes' sources and "
    "recordings of its components, a frequency follows the delays that the simulation draws, and neither "
    "is a rate of a real cluster.",
    "How often a watch of nodes lags behind a watch of pods in a real API server, and for how long.",
    "Crashes between the writes of nominatedNodeName (Option 3), of the kubelet, of the API server, and of "
    "several schedulers with leader election.",
    "PodDisruptionBudgets, PodGroups and topology: one node, and victims without them.",
    "The time of a kubelet's preemption: the emulated kubelet gives the room of its victims away before "
    "they have stopped, kubelet 1.36 waits for them.",
    "vertical-pod-autoscaler: its fallback time is emulated by a limit, its eviction is counted and not "
    "carried out.",
    "More than 1,000 deferred pods, and deferred pods that can preempt, beside a load of new pods.",
)


def page(runs: Sequence[Run]) -> str:
    """Return the page of some runs."""
    data = Data.of(runs)
    drawn = figures(data)
    parts = [
        "<h1>Preemption for a deferred resize (KEP-5836): the open questions, measured</h1>",
        "<p>Options are those of “Tracking Preemption Nominations to Avoid Double Preemption”: 1 accepts "
        "double preemption, 2 keeps the victims in memory, 3 writes nominatedNodeName, 4 reads "
        "spec.nodeName. In brackets are 95% confidence intervals, Wilson's for shares, of the order "
        "statistics for medians. A difference is named only if its interval excludes none.</p>",
        _answers(data, drawn),
        "<h2>Not measured</h2>",
        _list(_NOT_MEASURED),
        "<h2>Figures</h2>",
        _key(),
        *(_figure(number, one) for number, one in enumerate(drawn, 1)),
        "<h2>Tables</h2>",
        *(
            f'<h3>{escape(one.title)}</h3>\n<div class="wide">{table(one.columns, one.rows)}</div>'
            for one in tables(data)
        ),
        "<h2>Method</h2>",
        *map(_measured, runs),
        paragraphs(_method(runs)),
    ]
    return html.page(_TITLE, _STYLE, "\n".join(parts))


def _list(texts: Sequence[str]) -> str:
    return "<ul>" + "\n".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def _answers(data: Data, drawn: Sequence[Figure]) -> str:
    numbers: dict[Scenario, list[int]] = {}
    for number, figure in enumerate(drawn, 1):
        numbers.setdefault(figure.scenario, []).append(number)
    rows = [
        f"<tr><td><b>{escape(one.question)}</b><br>“{escape(one.section)}”</td><td>{escape(one.answer)}</td>"
        f"<td>{escape(one.evidence)} {_source(one.scenario, numbers.get(one.scenario, ()))}</td></tr>"
        for one in answers(data)
    ]
    head = "<tr><th>Question</th><th>Answer</th><th>Evidence</th></tr>"
    return (
        f'<table class="answers">\n<thead>{head}</thead>\n<tbody>\n' + "\n".join(rows) + "\n</tbody></table>"
    )


def _source(scenario: Scenario, numbers: Sequence[int]) -> str:
    links = ", ".join(f'<a href="#figure-{number}">figure {number}</a>' for number in numbers)
    return f"<code>--scenario {scenario.value}</code>{', ' if links else ''}{links}"


def _key() -> str:
    options = "".join(
        f'<span style="background: {COLOURS[one]}"></span>{OPTIONS[one]} ({one.value})' for one in OPTIONS
    )
    return (
        f'<p class="key">Colours, in all figures: {options}<span style="background: {GREY}"></span>'
        "another comparison. Lines: 95% confidence intervals.</p>"
    )


def _figure(number: int, one: Figure) -> str:
    plots = "\n".join(one.svgs())
    return (
        f'<figure id="figure-{number}">\n<h3>{number}. {escape(one.title)}</h3>\n<div>{plots}</div>\n'
        f"<figcaption>{escape(one.caption)} <code>{_COMMAND} --scenario {one.scenario.value}</code>"
        "</figcaption>\n</figure>"
    )


def _measured(run: Run) -> str:
    counts: dict[Scenario, list[int]] = {}
    for setup, rows in run.rows.items():
        counts.setdefault(setup.scenario, []).append(len(rows))
    shown = "; ".join(
        f"{scenario.value} {min(found)}{f' to {max(found)}' if max(found) > min(found) else ''}"
        for scenario, found in counts.items()
    )
    cores = run.machine.get("cores")
    return (
        f"<p>Measured with Nominee {escape(run.version)}, commit {escape(run.commit or 'unknown')}, on "
        f"{cores} cores. Seeds of each setup: {escape(shown)}.</p>"
    )


def _method(runs: Sequence[Run]) -> list[str]:
    low, high = CRASH_STOP_SECONDS
    return [
        "What depends on the order of events is simulated (docs/simulation.md): the components' own code "
        "on a simulated clock and network, whose delays the seed draws: a mean of 0.2, 1 or 5 ms, and up "
        "to 5% of the messages up to 50 ms late. A trial is a simulation of its own, so that trials are "
        "independent; the same seed has the same pods and the same moment of a crash with every option, so "
        "that options are compared by pairs. What depends on computing time is measured on real processes.",
        f"A trial has a node of {NODE_CPU // 1000} cpu that is full, a pod that is resized, up to seven "
        "pods of lower priority, and two of higher priority. Sizes, priorities and stopping times are "
        "drawn. “Needed” is the largest number of victims that one undisturbed preemption may choose; "
        "victims beyond it are redundant. The scheduler is killed with SIGKILL at a failpoint that the "
        f"seed draws; victims then take {low:g} to {high:g} s to stop. The autoscaler's fallback time of "
        f"{FALLBACK_SECONDS:g} s stands for five minutes. Writes are counted as a watch sees them.",
        "docs/studies/README.md describes the scenarios and the columns of the results, from which this "
        f"page is made: {_COMMAND} --input docs/studies/resize-preemption.json --html FILE.",
    ]
