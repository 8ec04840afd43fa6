"""Results of scenarios as JSON, JUnit XML and Markdown."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence

from nominee.lab.history.object_history import command
from nominee.lab.reports.junit import JUnitCase, Mark, junit
from nominee.lab.reports.markdown import markup_line, table_head
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.machinery.wire.values.scalars import Json

_SHOWN_MAX = 5
FORMATS = ("text", "json", "junit", "markdown")
SIGNS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.ERROR: "✗", Outcome.SKIPPED: "-"}
_JUNIT_MARKS = {Outcome.FAILED: Mark.FAILURE, Outcome.ERROR: Mark.ERROR, Outcome.SKIPPED: Mark.SKIPPED}


def render(results: Sequence[ScenarioResult], output: str) -> str:
    """Return the results in a format of FORMATS except text."""
    return {"json": as_json, "junit": as_junit, "markdown": as_markdown}[output](results)


def as_json(results: Sequence[ScenarioResult]) -> str:
    """Return a JSON object with the list of results."""
    return json.dumps({"results": [result.as_json() for result in results]}, indent=2)


def as_junit(results: Sequence[ScenarioResult]) -> str:
    """Return JUnit's XML: a test suite with one test case for each scenario."""
    return junit("nominee scenario", [junit_case(result) for result in results])


def junit_case(result: ScenarioResult, **properties: str) -> JUnitCase:
    """Return the test case of a scenario."""
    return JUnitCase(
        name=result.scenario,
        classname=result.section or "scenario",
        seconds=result.seconds,
        mark=_JUNIT_MARKS.get(result.outcome),
        message=result.reason,
        details=_details(result),
        attributes={"file": result.file},
        properties=properties,
    )


def _details(result: ScenarioResult) -> list[str]:
    lines = [f"{step.number}. {step.name}: {step.observation or step.outcome.value}" for step in result.steps]
    lines += [f"{violation.invariant}: {violation.message}" for violation in result.violations]
    if result.directory:
        lines += [f"logs: {result.directory}", f"history: {command(result.directory, result.objects)}"]
    return [*lines, f"reproduce: {result.reproduce}"] if result.reproduce else lines


def as_markdown(results: Sequence[ScenarioResult]) -> str:
    """Return a table of the scenarios, and the steps of each."""
    lines = table_head(["scenario", "section", "result", "checks", "seconds"])
    lines += [
        markup_line(
            [
                result.scenario,
                result.section,
                f"{SIGNS[result.outcome]} {result.outcome.value}",
                str(result.checks),
                f"{result.seconds:.1f}",
            ]
        )
        for result in results
    ]
    for result in results:
        lines += ["", f"## {result.title or result.scenario}", ""]
        if result.reason:
            lines += [result.reason, ""]
        for step in result.steps:
            observation = f": {step.observation}" if step.observation else ""
            lines.append(f"{step.number}. {SIGNS[step.outcome]} {step.name}{observation}")
        lines += [f"- {violation.invariant}: {violation.message}" for violation in result.violations]
        lines += [f"- measured {text}" for text in measured_texts(result)]
        lines += [f"- left out, another program does not answer: {text}" for text in result.left_out]
        if result.reproduce and not result.held:
            lines += ["", f"Reproduce: `{result.reproduce}`"]
    return "\n".join(lines)


def measured_texts(result: ScenarioResult) -> list[str]:
    """Return a line for each measure: its value, or those of all variants and seeds together."""
    found: dict[str, list[Json]] = {}
    for row in result.measurements:
        for name, value in row.values.items():
            found.setdefault(name, []).append(value)
    return [f"{name}: {_distribution(values)}" for name, values in found.items()]


def _distribution(values: Sequence[Json]) -> str:
    """Return `2`, or `median 2 (1 to 4) of 10 values`; of texts and lists how often each occurs."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(values) == 1:
        return f"{numbers[0]:.6g}" if numbers else json.dumps(values[0])
    missing = f", {len(values) - len(numbers)} without one" if len(numbers) < len(values) else ""
    if numbers:
        spread = f"{statistics.median(numbers):.6g} ({min(numbers):.6g} to {max(numbers):.6g})"
        return f"median {spread} of {len(numbers)} values{missing}"
    counts = Counter(map(json.dumps, values))
    return ", ".join(f"{text} ({count} times)" for text, count in counts.most_common(_SHOWN_MAX))


def summary(results: Sequence[ScenarioResult], *, simulated: bool = False) -> list[str]:
    """Return the lines after the steps of a run: the failures, how to reproduce them, and a count.

    The seconds are those of the clusters' clock, which is `simulated` or real.
    """
    lines = [""]
    for result in results:
        lines += [f"{result.scenario} measured {text}" for text in measured_texts(result)]
    for result in results:
        if result.left_out:
            count = len(result.left_out)
            lines.append(f"{result.scenario}: conditions that the program does not answer: {count}")
        if result.outcome is Outcome.SKIPPED:
            lines.append(f"{result.scenario} is skipped: {result.reason}")
        elif result.outcome is not Outcome.PASSED:
            how = "failed" if result.outcome is Outcome.FAILED else "could not be played"
            lines.append(f"{result.scenario} {how}: {result.reason}")
            if result.directory:
                lines.append(f"  logs and history: {result.directory}")
                lines.append(f"  history: {command(result.directory, result.objects)}")
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
    for result in results:
        if result.seeds:
            lines.append(f"{result.scenario}: {result.seeds}" if len(results) > 1 else result.seeds)
    return lines
