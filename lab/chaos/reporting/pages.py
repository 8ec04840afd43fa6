"""The results of `nominee chaos` as pages: cases with their findings, logs, commands and time lines."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from nominee.lab.chaos.cases.verdict import CaseResult
from nominee.lab.chaos.explorer import Report as Exploration
from nominee.lab.chaos.generated.search import Searched
from nominee.lab.chaos.reporting.report import counts
from nominee.lab.history.object_history import command
from nominee.lab.timeline import report
from nominee.lab.timeline.report import Block, Item, Report
from nominee.machinery.wire.values.scalars import Json


def exploration_page(found: Exploration) -> str:
    """Return the page of an exploration: the broken cases, smallest first, and then the others."""
    broken = {id(each) for each in found.broken}
    cases = [*found.broken, *(each for each in found.results if id(each) not in broken)]
    timelines = report.timelines((each.directory, str(each.case), _subjects(each)) for each in found.broken)
    return report.page(
        Report(
            title=f"chaos explore {found.scenario.file}",
            summary="; ".join(filter(None, [found.error, counts(found)])),
            columns=("case", "what happened", "observed", "seconds"),
            items=[_case(each, timelines) for each in cases],
            timelines=timelines,
        )
    )


def _subjects(result: CaseResult) -> Sequence[str]:
    return [result.subject] if result.subject else [each for one in result.violations for each in one.objects]


def _case(result: CaseResult, timelines: Container[str]) -> Item:
    commands = {"Run it again": result.reproduce}
    if result.directory:
        commands["Look at its history"] = command(result.directory, _subjects(result))
        commands["Check its invariants"] = f"nominee verify --dir {result.directory}"
    differs = "" if result.difference is None else f"First difference: {result.difference.describe()}"
    return Item(
        name=str(result.case) or "without any perturbation",
        outcome=result.verdict.value,
        cells=(result.disturbance, result.observation, f"{result.seconds:.1f}"),
        texts=(result.disturbance, result.observation, differs),
        blocks=[
            Block("Violated invariants", [f"{v.invariant}: {v.message}" for v in result.violations], True),
            Block("Accepted findings that it shows", result.accepted, True),
            Block(f"Writes of {result.subject} around the first difference", result.writes, True),
            *report.logs(result.directory),
        ],
        commands=commands,
        timeline=result.directory if result.directory in timelines else "",
    )


def generation_page(results: Sequence[Searched]) -> str:
    """Return the page of generated scenarios: the seeds with findings, and then the others."""
    runs, found = sum(each.runs for each in results), sum(bool(each.rule) for each in results)
    return report.page(
        Report(
            title="chaos generate",
            summary=f"{len(results)} seeds in {runs} runs: {found} with findings",
            columns=("seed", "observed", "disturbance", "runs"),
            items=[
                _searched(each) for each in sorted(results, key=lambda each: not (each.rule or each.error))
            ],
        )
    )


def _searched(result: Searched) -> Item:
    known = f"Seed {result.known_seed} reported the same." if result.known_seed >= 0 else ""
    return Item(
        name=f"seed {result.seed}",
        outcome="error" if result.error else "broken" if result.rule else "held",
        cells=(result.observation or result.error, result.case, str(result.runs)),
        texts=(result.observation, result.error, known, result.case),
        blocks=[Block(f"The smallest scenario, {result.file}", report.tail(Path(result.file), None), True)]
        if result.file
        else [],
        commands={
            "Run it again": result.reproduce or f"nominee chaos generate --seed {result.seed} --rounds 1"
        },
    )


def random_runs_page(results: Sequence[Mapping[str, Json]]) -> str:
    """Return the page of the runs of `nominee chaos run`, as JSON has them."""
    timelines = report.timelines((each["directory"], f"seed {each['seed']}", ()) for each in results)
    failed = sum(bool(each["problems"]) for each in results)
    return report.page(
        Report(
            title="chaos run",
            summary=f"{len(results)} runs, {failed} failed",
            columns=("seed", "problems", "operations", "pods", "seconds"),
            items=[_run(each, timelines) for each in results],
            timelines=timelines,
        )
    )


def _run(result: Mapping[str, Json], timelines: Container[str]) -> Item:
    problems, done, refused = result["problems"], result["operations"], result["refused"]
    commands = {"Run it again": result["reproduce"], "Look at its history": result["history"]}
    operations = [f"{count} {name}, {refused.get(name, 0)} refused" for name, count in done.items()]
    version = f"version {result['version']} commit {result['commit'] or 'unknown'}"
    return Item(
        name=f"seed {result['seed']}",
        outcome="error" if not result["ran"] else "failed" if problems else "held",
        cells=("; ".join(problems), str(sum(done.values())), str(result["pods"]), f"{result['seconds']:.1f}"),
        texts=[*problems, version],
        blocks=[Block("Operations", operations, is_open=True), *report.logs(result["directory"])],
        commands=commands,
        timeline=result["directory"] if result["directory"] in timelines else "",
    )
