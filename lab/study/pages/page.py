"""The static HTML page of the study: conclusions, figures, tables, method."""

from __future__ import annotations

from html import escape

from nominee.lab.reports import html
from nominee.lab.reports.html import paragraphs, table
from nominee.lab.study.pages.conclusions import conclusions, method
from nominee.lab.study.pages.figures import Figure, figures
from nominee.lab.study.pages.report import Report
from nominee.lab.study.pages.tables import Table, tables

_TITLE = "KEP-5836: the open questions, measured"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
body { color: #222; background: #fff }
figure { margin: 2rem 0; border-top: 1px solid #ccc; padding-top: 1rem }
figure div { background: #fff; border-radius: 4px }
figure svg { width: 100%; height: auto }
figcaption { font-size: 0.9rem }
table { border-collapse: collapse; font-size: 0.75rem; margin: 1rem 0 }
th, td { border: 1px solid #ccc; padding: 0.15rem 0.4rem; text-align: left }
.wide { overflow-x: auto }
td { white-space: nowrap }
td:last-child { white-space: normal; min-width: 7rem }
code { background: #f2f2f2; padding: 0 0.2rem }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117 }
  code { background: #262d36 }
  figure, th, td { border-color: #3a434e }
}
"""


def page(report: Report) -> str:
    """Return the page of a report."""
    parts = [
        "<h1>Preemption for a deferred resize (KEP-5836): the open questions, measured</h1>",
        _setup(report),
        *(f"<h2>{escape(each.title)}</h2>\n{paragraphs(each.paragraphs)}" for each in conclusions(report)),
        "<h2>Figures</h2>",
        *(_figure(number, one) for number, one in enumerate(figures(report), 1)),
        "<h2>Tables</h2>",
        *map(_table, tables(report)),
        "<h2>Method</h2>",
        paragraphs(method(report)),
    ]
    return html.page(_TITLE, _STYLE, "\n".join(parts))


def _setup(report: Report) -> str:
    size = "a reduced run (<code>--quick</code>)" if report.quick else "a full run"
    quick = " --quick" if report.quick else ""
    command = f"nominee study resize-preemption --seeds {report.seeds}{quick} --html FILE"
    return (
        f"<p>Measured with Nominee {escape(report.version)} on {report.machine.get('cores')} cores, "
        f"{report.seeds} seeds, {size}: <code>{escape(command)}</code>. Nominee is an emulator of the "
        "Kubernetes control plane; its processes are not those of Kubernetes, and its absolute times are not "
        "those of a Kubernetes cluster.</p>"
    )


def _figure(number: int, one: Figure) -> str:
    return (
        f"<figure>\n<h3>{number}. {escape(one.title)}</h3>\n<div>{one.svg}</div>\n"
        f"<figcaption>{escape(one.caption)} <code>{escape(one.command)}</code></figcaption>\n</figure>"
    )


def _table(one: Table) -> str:
    return f'<h3>{escape(one.title)}</h3>\n<div class="wide">{table(one.columns, one.rows)}</div>'
