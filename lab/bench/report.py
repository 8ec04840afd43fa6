"""The results of benchmarks as text and as a page: lines, tables, and a chart."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from nominee.lab.reports import html
from nominee.lab.timeline import report as pages
from nominee.machinery.printing.tables import table
from nominee.machinery.wire.values.scalars import Json

_WIDTH, _HEIGHT, _STEP_MAX = 1000, 120, 40


@dataclass(frozen=True, slots=True)
class Table:
    """Measured values; the first column has the names of the lines."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Chart:
    """Values as columns, each with its name; text has no charts."""

    title: str
    values: Sequence[tuple[str, float]]


Part = str | Table | Chart


def parts(report: Mapping[str, Json]) -> Iterator[Part]:
    """Yield the parts of a report in their order; the first one is its summary."""
    yield from (_watch if report["benchmark"] == "watch" else _scheduling)(report)
    on = report["machine"]
    yield (
        f"machine: {on['cores']} cores of {on['processor']}, {on['memoryMiB']} MiB, Linux {on['kernel']}, "
        f"Python {on['python']}; {on['busyElsewhere']:.0%} of it used by other processes"
    )


def text(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the lines of a report."""
    for part in parts(report):
        if isinstance(part, str):
            yield part
        elif isinstance(part, Table):
            yield from table(part.header, part.rows)


def page(report: Mapping[str, Json], command: Sequence[str]) -> str:
    """Return the page of a report; the words of the command repeat it."""
    summary, *others = parts(report)
    content = [_html(part) for part in others]
    content.append(f'<h3>Measure it again</h3><pre class="command">{escape(shlex.join(command))}</pre>')
    title = f"bench {report['benchmark']}"
    return pages.page(pages.Report(title=title, summary=str(summary), content="\n".join(content)))


def _html(part: Part) -> str:
    if isinstance(part, Table):
        return f'<div class="scroll panel">{html.table(part.header, part.rows)}</div>'
    return f"<p>{escape(part)}</p>" if isinstance(part, str) else _columns(part)


def _columns(chart: Chart) -> str:
    """Return a chart as SVG: the highest value is the height of the plot."""
    top = max((value for _, value in chart.values), default=0.0) or 1.0
    step = min(_WIDTH / max(len(chart.values), 1), _STEP_MAX)
    bars = "".join(
        f'<rect x="{number * step:.1f}" y="{_HEIGHT * (1 - value / top):.1f}" width="{step * 0.85:.1f}" '
        f'height="{_HEIGHT * value / top:.1f}"><title>{escape(name)}: {value:g}</title></rect>'
        for number, (name, value) in enumerate(chart.values)
    )
    caption = (
        f"{chart.title}: {chart.values[0][0]} to {chart.values[-1][0]}, at most {top:g}"
        if chart.values
        else ""
    )
    return (
        f'<figure class="chart panel"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(caption)}">{bars}</svg>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _watch(report: Mapping[str, Json]) -> Iterator[Part]:
    settings = report["settings"]
    yield f"lists of {settings['pods']} pods (ms, medians)"
    header = ["", "MB", "first byte", "whole", "chunks of 500", "server MiB"]
    yield Table(
        header,
        [
            [
                name,
                *(str(found[key]) for key in ("megabytes", "firstByteMilliseconds", "wholeMilliseconds")),
                str(found["chunksOf500Milliseconds"] or ""),
                " to ".join(map(str, found["memoryMiB"])),
            ]
            for name, found in report["lists"].items()
        ],
    )
    yield f"{settings['watchers']} watchers, {settings['rate']} changes/s, {settings['slow']} that never read"
    header = ["", "changes/s", "p50 ms", "p99 ms", "max ms", "missed", "server us/event", "server MiB"]
    watches = report["watches"].items()
    yield Table(
        header,
        [
            [
                form,
                str(found["changesPerSecond"]),
                *(str(found["delayMilliseconds"][name]) for name in ("p50", "p99", "p100")),
                str(found["expected"] - found["events"]),
                str(found["cpuMicrosecondsPerEvent"]),
                " to ".join(str(found["memoryMiB"][name]) for name in ("before", "after")),
            ]
            for form, found in watches
        ],
    )
    delays = [(form, found["delayMilliseconds"]["p99"]) for form, found in watches]
    yield Chart("delay of an event, p99, in ms", delays)


def _scheduling(report: Mapping[str, Json]) -> Iterator[Part]:
    settings, throughput, latency = (
        report["settings"],
        report["throughput"],
        report["attemptLatencyMilliseconds"],
    )
    yield (
        f"{settings['workload']}: {settings['pods']} pods on {settings['nodes']} nodes "
        f"({settings['init_pods']} pods before): "
        f"{throughput['average']} pods/s in {throughput['seconds']} s"
    )
    yield from reference_lines(report["reference"])
    samples = [(f"second {number}", value) for number, value in enumerate(throughput["samples"], start=1)]
    yield Chart("pods/s in one-second samples", samples)
    names = ("p50", "p90", "p95", "p99")
    rows = [
        ["pods/s in one-second samples", *(str(throughput[name]) for name in names)],
        ["scheduling attempt (ms)", *(str(latency[name]) for name in names)],
    ]
    yield Table(["", "P50", "P90", "P95", "P99"], rows)
    algorithm = report["schedulingAlgorithm"]
    yield (
        f"{algorithm['attemptsPerSecond']} attempts/s, "
        f"{algorithm['meanMilliseconds']} ms of scheduling algorithm each on average"
    )
    cpu = ", ".join(f"{name} {spent}" for name, spent in report["cpuMillisecondsPerPod"].items())
    yield f"created {report['created']['podsPerSecond']} pods/s; processor ms a pod: {cpu}"
    memory = ", ".join(f"{name} {size}" for name, size in report["memory"]["pssMiB"].items())
    yield f"memory (PSS, MiB): {memory}; together {report['memory']['sumMiB']}"


def reference_lines(reference: Mapping[str, Mapping[str, float] | None]) -> Iterator[str]:
    """Yield the figures of the real component, if there are any of this size."""
    for name, found in reference.items():
        if found is not None:
            figure = " to ".join(dict.fromkeys(f"{found[key]:g}" for key in ("lowest", "highest")))
            yield f"{name} at this size on two cores: {figure} pods/s"
