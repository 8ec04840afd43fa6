"""Results of scenarios as JSON, JUnit XML and Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from nominee.lab.scenario.result import Outcome, ScenarioResult

FORMATS = ("text", "json", "junit", "markdown")
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may have, such as the escape character of terminals."""
_MARKS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.ERROR: "✗", Outcome.SKIPPED: "-"}


def render(results: Sequence[ScenarioResult], output: str) -> str:
    """Return the results in a format of FORMATS except text."""
    return {"json": as_json, "junit": as_junit, "markdown": as_markdown}[output](results)


def as_json(results: Sequence[ScenarioResult]) -> str:
    """Return a JSON object with the list of results."""
    return json.dumps({"results": [result.as_json() for result in results]}, indent=2)


def as_junit(
    results: Sequence[ScenarioResult],
    suite: str = "nominee scenario",
    played: Mapping[str, str] | None = None,
) -> str:
    """Return JUnit's XML: a test suite of this name with one test case for each scenario.

    `played` is the property "played" of the scenarios that it names.
    """
    counts = {outcome: sum(result.outcome is outcome for result in results) for outcome in Outcome}
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(results)),
        failures=str(counts[Outcome.FAILED]),
        errors=str(counts[Outcome.ERROR]),
        skipped=str(counts[Outcome.SKIPPED]),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = ElementTree.SubElement(
            root,
            "testcase",
            name=result.scenario,
            classname=result.section or "scenario",
            file=result.file,
            time=f"{result.seconds:.3f}",
        )
        if played and result.scenario in played:
            properties = ElementTree.SubElement(case, "properties")
            ElementTree.SubElement(properties, "property", name="played", value=played[result.scenario])
        if result.outcome is Outcome.SKIPPED:
            ElementTree.SubElement(case, "skipped", message=result.reason)
        elif result.outcome is not Outcome.PASSED:
            tag = "failure" if result.outcome is Outcome.FAILED else "error"
            ElementTree.SubElement(case, tag, message=result.reason).text = "\n".join(_details(result))
    ElementTree.indent(root)
    # ElementTree would name the locale's encoding.
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}'
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _details(result: ScenarioResult) -> list[str]:
    lines = [f"{step.number}. {step.name}: {step.observation or step.outcome.value}" for step in result.steps]
    lines += [f"{violation.invariant}: {violation.message}" for violation in result.violations]
    lines += [f"logs: {result.directory}"] if result.directory else []
    return [*lines, f"reproduce: {result.reproduce}"] if result.reproduce else lines


def as_markdown(results: Sequence[ScenarioResult]) -> str:
    """Return a table of the scenarios, and the steps of each."""
    lines = ["| scenario | section | result | checks | seconds |", "|---|---|---|---|---|"]
    lines += [
        f"| {result.scenario} | {_cell(result.section)} | {_MARKS[result.outcome]} {result.outcome.value} "
        f"| {result.checks} | {result.seconds:.1f} |"
        for result in results
    ]
    for result in results:
        lines += ["", f"## {result.title or result.scenario}", ""]
        if result.reason:
            lines += [result.reason, ""]
        for step in result.steps:
            observation = f": {step.observation}" if step.observation else ""
            lines.append(f"{step.number}. {_MARKS[step.outcome]} {step.name}{observation}")
        lines += [f"- {violation.invariant}: {violation.message}" for violation in result.violations]
        if result.reproduce and not result.held:
            lines += ["", f"Reproduce: `{result.reproduce}`"]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def summary(results: Sequence[ScenarioResult], *, simulated: bool = False) -> list[str]:
    """Return the lines after the steps of a run: what failed and how to reproduce it, and a count.

    The seconds are those of the clusters' clock, which is `simulated` or real.
    """
    lines = [""]
    for result in results:
        if result.outcome is Outcome.SKIPPED:
            lines.append(f"{result.scenario} is skipped: {result.reason}")
        elif result.outcome is not Outcome.PASSED:
            how = "failed" if result.outcome is Outcome.FAILED else "could not be played"
            lines.append(f"{result.scenario} {how}: {result.reason}")
            if result.directory:
                lines.append(f"  logs and history: {result.directory}")
            lines.append(f"  reproduce: {result.reproduce}")
    passed = [result for result in results if result.outcome is Outcome.PASSED]
    checks, seconds = sum(r.checks for r in results), sum(r.seconds for r in results)
    skipped = sum(result.outcome is Outcome.SKIPPED for result in results)
    played = f"{len(passed)} of {len(results) - skipped} scenarios passed"
    clock = "simulated s" if simulated else "s"
    time = f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"
    lines.append(
        f"{played}{f', {skipped} skipped' if skipped else ''}: {checks} checks held in {time} {clock}"
    )
    return lines
