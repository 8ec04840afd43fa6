"""The results of scenarios as a page: steps, logs, commands, and the time lines of their histories."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from nominee.lab.history.invariants.checking import checker
from nominee.lab.history.object_history import command
from nominee.lab.history.process_logs import LogLine
from nominee.lab.history.revision import Revision
from nominee.lab.scenario.play.report import SIGNS, measured_texts, summary
from nominee.lab.scenario.result import Outcome, ScenarioResult, StepResult
from nominee.lab.timeline import report
from nominee.lab.timeline.marks import Mark, of_violations
from nominee.lab.timeline.report import Block, Item, Report

_STEP = "Step"
"""The message of a log line about a step that changes something."""


def page(results: Sequence[ScenarioResult], title: str, *, keep: bool, simulated: bool = False) -> str:
    """Return the page of some results, whose directories may have histories and logs.

    With `keep` those of scenarios that held remain.
    """

    def more(directory: str, history: Sequence[Revision], log: Sequence[LogLine]) -> Iterator[Mark]:
        return marks([each for each in results if each.directory == directory], history, log)

    runs = ((each.directory, each.title or each.scenario, each.objects) for each in results)
    found = report.timelines(runs, more)
    return report.page(
        Report(
            title=title,
            summary=summary([each for each in results if not each.seeds], simulated=simulated)[-1],
            columns=("scenario", "title", "checks", "seconds", "result"),
            items=[_item(each, found, keep or not each.held) for each in results],
            timelines=found,
        )
    )


def _item(result: ScenarioResult, timelines: Container[str], has_files: bool) -> Item:
    history = command(result.directory, result.objects) if has_files and result.directory else ""
    why = "; ".join(filter(None, (result.reason, result.seeds)))
    return Item(
        name=result.scenario,
        outcome=result.outcome.value,
        cells=(result.title, str(result.checks), f"{result.seconds:.1f}", why),
        texts=(result.title, result.section, why),
        blocks=[
            Block("Steps", list(map(_line, result.steps)), is_open=True),
            Block(
                "Violated invariants",
                [f"{each.invariant}: {each.message}" for each in result.violations],
                True,
            ),
            Block("Measured", measured_texts(result), is_open=True),
            Block("Left out, another program does not answer", result.left_out),
            *report.logs(result.directory),
        ],
        commands={"Play it again": result.reproduce, "Look at its history": history},
        timeline=result.directory if result.directory in timelines else "",
    )


def _line(step: StepResult) -> str:
    seen = f": {step.observation}" if step.observation else ""
    return f"{step.started_seconds:7.2f}s {SIGNS[step.outcome]} {step.number}. {step.name}{seen}"


def marks(
    results: Sequence[ScenarioResult], history: Sequence[Revision], log: Sequence[LogLine]
) -> Iterator[Mark]:
    """Yield the marks of checks, waits, failed steps and violations; other steps are in the log.

    The results are those of one cluster in their order. A step's time is that of its line in the log, or as
    long before or after the first such line as its scenario began earlier or later.
    """
    lines = [line for line in log if line.message == _STEP]
    end = 0.0
    for result in results:
        starts = {step.name: step.started_seconds for step in reversed(result.steps)}
        logged = [line for line in lines if line.time >= end and line.fields.get("text") in starts]
        if logged:
            began = logged[0].time - starts[logged[0].fields["text"]]
            end = began + result.seconds
            named = {line.fields["text"] for line in logged if line.time <= end}
            for step in result.steps:
                failed = step.outcome in (Outcome.FAILED, Outcome.ERROR)
                if failed or step.name not in named:
                    text = f"{SIGNS[step.outcome]} {step.name}" + (f": {step.observation}" if failed else "")
                    at = began + step.started_seconds + (step.seconds if failed else 0.0)
                    yield Mark(at, "violation" if failed else "step", text)
        times = {each.revision: each.time for each in history}
        yield from of_violations(
            (
                checker.Violation(
                    invariant=each.invariant,
                    message=each.message,
                    revisions=each.revisions,
                    objects=each.objects,
                )
                for each in result.violations
                if each.revisions
            ),
            times,
        )
