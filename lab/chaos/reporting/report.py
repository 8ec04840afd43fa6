"""The report of an exploration as text, JSON and Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from nominee.lab.chaos.cases.verdict import CaseResult, Verdict
from nominee.lab.chaos.explorer import Report
from nominee.lab.history.object_history import command
from nominee.lab.reports.markdown import markup_line, one_cell, table_head

VARYING = "#"
"""Lines of the text that begin with it differ from run to run; in simulations all others are the same."""


def as_json(reports: Sequence[Report]) -> str:
    """Return a JSON object with one element for each scenario."""
    return json.dumps({"explorations": [_document(report) for report in reports]}, indent=2)


def _document(report: Report) -> dict[str, object]:
    return {
        "scenario": report.scenario.name,
        "file": report.scenario.file,
        "seed": report.seed,
        "seconds": round(report.seconds, 3),
        "clusters": report.clusters,
        "rounds": report.rounds,
        "runs": report.runs,
        "failpoints": report.failpoints,
        "singleCases": report.singles,
        "notRun": report.left,
        "error": report.error,
        "broken": [result.as_json() for result in report.broken],
        "results": [result.as_json() for result in report.results],
    }


def as_markdown(reports: Sequence[Report]) -> str:
    """Return the broken cases, smallest first, and the counts of each exploration."""
    lines: list[str] = []
    for report in reports:
        lines += [f"## {report.scenario.title or report.scenario.name}", "", counts(report), ""]
        if report.error:
            lines += [f"Ended early: {report.error}", ""]
        if report.broken:
            lines += table_head(["case", "observation", "reproduce"])
            lines += [
                markup_line([f"`{each.case}`", each.observation, f"`{each.reproduce}`"])
                for each in report.broken
            ]
            lines.append("")
        rest = [result for result in report.results if result.verdict in _NAMED]
        for each in rest:
            text = one_cell(" ".join([each.observation, *each.accepted]))
            lines.append(f"- {each.verdict.value}: `{each.case}` {text}".rstrip())
    return "\n".join(lines)


_NAMED = (Verdict.ACCEPTED, Verdict.INCONCLUSIVE, Verdict.UNREACHED, Verdict.ERROR)
"""The verdicts whose cases are listed after the broken ones."""


def as_text(report: Report) -> list[str]:
    """Return the lines after an exploration: the broken cases, how to reproduce them, and counts."""
    lines = [""]
    for result in report.broken:
        lines += _broken(result)
    for result in report.results:
        if result.verdict in _NAMED and result.case.perturbations:
            lines.append(f"{result.verdict.value}: {result.case}: {result.observation}".removesuffix(": "))
            lines += [f"  {reason}" for reason in result.accepted]
    if not report.error and not report.applied_count:
        lines.append("no case took place")
    if report.error:
        lines.append(f"ended early: {report.error}")
    return [*lines, counts(report), f"{VARYING} {report.seconds:.0f} s"]


def _broken(result: CaseResult) -> list[str]:
    lines = [f"broken: {result.case}" if result.case.perturbations else "broken without any perturbation"]
    if result.case.perturbations:
        lines.append(f"  disturbance: {result.disturbance}")
    lines.append(f"  observed: {result.observation}")
    lines += [f"  {each.invariant}: {each.message}" for each in result.violations[1:]]
    lines += [f"  with an accepted finding: {reason}" for reason in result.accepted]
    if result.difference is not None:
        lines.append(f"  first difference: {result.difference.describe()}")
        lines += [f"  {result.subject}:", *(f"    {write}" for write in result.writes)]
    if result.directory:
        lines.append(
            f"{VARYING}  logs and history: {result.directory} (nominee verify --dir {result.directory})"
        )
        subjects = [result.subject] if result.subject else []
        lines.append(f"{VARYING}  history: {command(result.directory, subjects)}")
    return [*lines, f"  reproduce: {result.reproduce}"]


def counts(report: Report) -> str:
    """Return one line: the number of cases by verdict."""
    found = Counter(result.verdict for result in report.results)
    verdicts = ", ".join(f"{found[verdict]} {verdict.value}" for verdict in Verdict if found[verdict])
    left = f"; {report.left} single cases were not run" if report.left else ""
    return (
        f"{report.scenario.name}: {report.failpoints} failpoints, {len(report.results)} cases in "
        f"{report.runs} runs on {report.clusters} clusters: {verdicts or 'none'}{left}"
    )
