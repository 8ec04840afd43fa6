"""Look for seeds whose scenarios report something, and shrink the findings to files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from nominee import scenarios
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope
from nominee.lab.chaos.cases.verdict import CaseResult
from nominee.lab.chaos.clusters import SimulatedClusters
from nominee.lab.chaos.explorer import ExplorationSettings, Explorer, Report
from nominee.lab.chaos.generated.generating import Document, generate
from nominee.lab.chaos.generated.shrinking import Found, shrink
from nominee.lab.reports.records import Record
from nominee.lab.scenario.format.documents import InvalidScenarioError, read_documents
from nominee.lab.scenario.format.reading import read_text
from nominee.machinery.runtime.clock import SystemClock

_NAME = re.compile(r"\S*[-/0-9]\S*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched(Record):
    """The result of a seed: the number of runs of its scenario, and the observation if one did not hold.

    `rule` is the observation without names. `known_seed` is an earlier one that reported the same, which is
    not shrunk again, or -1.
    """

    seed: int
    runs: int
    rule: str = ""
    observation: str = ""
    case: str = ""
    known_seed: int = -1
    file: str = ""
    steps: int = 0
    reproduce: str = ""
    error: str = ""


class Search:
    """Runs the scenarios of seeds; `cases` is how many disturbed runs each has. Files are in `directory`.

    `tries` is how many smaller scenarios are tried for a finding; 0 leaves it as it is.
    """

    def __init__(self, directory: Path, cases: int, tries: int, say: Callable[[str], None]) -> None:
        self._directory, self._cases, self._tries, self._say = directory, cases, tries, say
        self._seeds: dict[str, int] = {}
        self._source = read_source()

    def run(self, seeds: Iterable[int], budget_seconds: float) -> Iterator[Searched]:
        """Yield the result of each seed; none begins after this time."""
        clock = SystemClock()
        deadline = clock.monotonic() + budget_seconds
        for seed in seeds:
            if clock.monotonic() >= deadline:
                return
            yield self._one(seed)

    def _one(self, seed: int) -> Searched:
        """Return the result of a seed."""
        document = generate(seed, self._source)
        report = self._explore(document, seed)
        if not report.broken:
            return Searched(seed=seed, runs=report.runs, error=report.error)
        first = report.broken[0]
        rule = rule_of(first)
        if rule in self._seeds:
            return Searched(
                seed=seed,
                runs=report.runs,
                rule=rule,
                observation=first.observation,
                case=str(first.case),
                known_seed=self._seeds[rule],
            )
        self._seeds[rule] = seed
        return self._shrunk(Found(document, first.case), first, seed, report.runs)

    def _shrunk(self, found: Found, first: CaseResult, seed: int, runs: int) -> Searched:
        """Shrink a finding, and write it."""
        rule, last = rule_of(first), first
        self._say(f"seed {seed}: {first.observation}; looking for the smallest scenario")

        def check(document: Document, case: Case) -> Case | None:
            nonlocal last, runs
            try:
                report = self._explore(document, seed, case)
            except InvalidScenarioError:
                return None
            runs += report.runs
            same = next((each for each in report.broken if rule_of(each) == rule), None)
            last = same or last
            return same.case if same is not None else None

        small = shrink(found, check, self._tries)
        document = small.document
        if not document["spec"]["chaos"]["acceptedFindings"]:
            del document["spec"]["chaos"]
        document["metadata"]["title"] = last.observation
        path = self._path(seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(document), encoding="utf-8")
        return Searched(
            seed=seed,
            runs=runs,
            rule=rule,
            observation=last.observation,
            case=str(small.case),
            file=str(path),
            steps=len(document["spec"]["steps"]),
            reproduce=last.reproduce,
        )

    def _path(self, seed: int) -> Path:
        return self._directory / f"generated-{seed}.yaml"

    def _explore(self, document: Document, seed: int, case: Case | None = None) -> Report:
        """Run a scenario, and then a case, or cases that are drawn from the seed.

        Raises:
            InvalidScenarioError: the document is no scenario.
        """
        (scenario,) = read_text(text_of(document), str(self._path(seed)))
        settings = ExplorationSettings(
            scope=Scope(seed=seed),
            # The number of cases is the limit: the same seed gives the same cases.
            budget_seconds=float("inf"),
            case=case,
            random_count=self._cases,
            simulate=True,
            stops=True,
        )
        base = self._directory / f"seed-{seed}"
        try:
            return Explorer(scenario, SimulatedClusters(scenario, base), settings, lambda _: None).run()
        finally:
            shutil.rmtree(base, ignore_errors=True)  # the command that reproduces the finding keeps them


def read_source() -> Document:
    """Return the subjects of generated scenarios."""
    path = Path(scenarios.__file__).with_name("generated.yml")
    (document,) = read_documents(path.read_text(encoding="utf-8"), str(path))
    source: Document = document.value
    return source


def text_of(document: Document) -> str:
    """Return a scenario as YAML."""
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)


def rule_of(result: CaseResult) -> str:
    """Return the invariant of a finding, or its sentence without the names of objects."""
    if result.violations:
        return result.violations[0].invariant
    return _NAME.sub("*", result.observation.removeprefix("the cluster does not come to rest: "))
