"""Run the cases of an exploration on real processes, one after another, within a budget of time."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from machinery.runtime.clock import SystemClock
from nominee.chaos.case import Case
from nominee.chaos.exploration import Exploration, Scope
from nominee.chaos.messages import Answer, Plan
from nominee.chaos.tolerance import changes, controlled
from nominee.chaos.verdict import CaseResult, Verdict, judge
from nominee.chaos.workers import Worker, WorkerError
from nominee.scenario.model import Scenario

WATCHED: Mapping[str, tuple[str, ...]] = {
    "scheduler": ("pods", "nodes"),
    "kubelet": ("pods",),
    "controllers": ("pods", "nodes"),
    "autoscaler": ("pods", "nodes"),
    "apiserver": ("etcd",),
}
"""The kinds whose watches are changed, by component; the API server watches etcd's keys."""
START_SECONDS_MAX = 120.0
CASES_PER_CLUSTER_MAX = 40
"""A history grows, and its check with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of an exploration. `case` None runs all of them. `base` is the directory of clusters."""

    scope: Scope
    base: Path
    budget_seconds: float
    case: Case | None = None
    keep: bool = False
    verbose: bool = False


@dataclass(slots=True, kw_only=True)
class Report:
    """The result of an exploration. `error` is why it could not be run, or ended early."""

    scenario: Scenario
    seed: int
    results: list[CaseResult] = field(default_factory=list)
    broken: list[CaseResult] = field(default_factory=list)
    failpoints: int = 0
    """Failpoints that the undisturbed run passed, over all processes."""
    singles: int = 0
    left: int = 0
    """Single cases for which there was no time."""
    clusters: int = 0
    seconds: float = 0.0
    error: str = ""


Say = Callable[[str], None]


class Explorer:
    """Runs the cases of one scenario."""

    def __init__(self, scenario: Scenario, settings: Settings, say: Say) -> None:
        self._scenario, self._settings, self._say = scenario, settings, say
        self._clock = SystemClock()
        self._worker: Worker | None = None
        self._ran_on_worker = 0
        self._needed: dict[int, float] = {}
        self.report = Report(scenario=scenario, seed=settings.scope.seed)

    def run(self) -> Report:
        """Run the undisturbed scenario, and then the cases until the time is over."""
        began = self._clock.monotonic()
        try:
            hits = self._plain()
            if hits is not None:
                self._cases(hits, began + self._settings.budget_seconds)
        except WorkerError as error:
            self.report.error = str(error)
        finally:
            self._close()
            self.report.seconds = self._clock.monotonic() - began
        return self.report

    def _plain(self) -> Mapping[str, Mapping[str, int]] | None:
        """Run the scenario without perturbations; return the failpoints that it passed, None if it fails."""
        result, answer = self._run(Case())
        if result.verdict is not Verdict.HELD or answer is None or answer.hits is None:
            self.report.results = [result]
            if result.verdict is Verdict.BROKEN:
                self.report.broken = [result]
            else:
                self.report.error = result.observation
            return None
        self._needed = {step.number: step.seconds for step in answer.scenario_result.steps}
        own = controlled(self._scenario)
        hits = {
            process: {name: count for name, count in points.items() if (process, name) not in own}
            for process, points in answer.hits.items()
        }
        self.report.failpoints = sum(len(points) for points in hits.values())
        return hits

    def _cases(self, hits: Mapping[str, Mapping[str, int]], deadline: float) -> None:
        exploration = Exploration(hits, self._scope(hits))
        self.report.singles = exploration.single_count
        while self._clock.monotonic() < deadline:
            case = self._settings.case or exploration.next_case()
            if case is None:
                break
            result, _ = self._run(case)
            exploration.record(result)
            number = f"{len(exploration.results)}/{exploration.single_count}"
            self._say(f"{number:>8} {result.verdict.value:12} {result.seconds:5.1f}s {case}")
            if result.verdict is Verdict.BROKEN:
                self._say(f"{'':8} {result.observation}")
            if self._settings.case is not None:
                break
        self.report.results = exploration.results
        self.report.broken = exploration.broken()
        self.report.left = exploration.left if self._settings.case is None else 0

    def _scope(self, hits: Mapping[str, Mapping[str, int]]) -> Scope:
        watched = {
            process: kinds
            for process in hits
            for component, kinds in WATCHED.items()
            if process == component or process.startswith(f"{component}-")
        }
        return replace(self._settings.scope, watched=watched, steps=changes(self._scenario))

    # Workers

    def _run(self, case: Case) -> tuple[CaseResult, Answer | None]:
        """Run a case on the cluster, or on a new one; a case whose worker ends is an error."""
        worker = self._ready()
        began = self._clock.monotonic()
        seconds_max = self._scenario.timeout_seconds * 3 + START_SECONDS_MAX
        try:
            answer = worker.run(case, self._needed, seconds_max)
        except WorkerError as error:
            failed = CaseResult(case=case, verdict=Verdict.ERROR, observation=str(error))
            return replace(failed, reproduce=self._reproduce(case)), None
        self._ran_on_worker += 1
        found = judge(case, answer.scenario_result, reached=answer.reached, unsettled=answer.unsettled)
        kept = worker.directory if found.verdict is Verdict.BROKEN else ""
        seconds = self._clock.monotonic() - began
        found = replace(found, seconds=seconds, directory=kept, reproduce=self._reproduce(case))
        if not worker.is_usable:
            self._close(keep=bool(kept))
        return found, answer

    def _ready(self) -> Worker:
        """Return a worker whose cluster runs.

        Raises:
            WorkerError: it does not start.
        """
        if self._worker is not None and self._ran_on_worker >= CASES_PER_CLUSTER_MAX:
            self._close()
        if self._worker is None:
            self.report.clusters += 1
            plan = Plan(
                file=self._scenario.file,
                name=self._scenario.name,
                directory=str(self._settings.base / f"{self.report.clusters:03}"),
                verbose=self._settings.verbose,
            )
            self._worker, self._ran_on_worker = Worker(plan), 0
            self._worker.wait_ready(START_SECONDS_MAX)
        return self._worker

    def _close(self, *, keep: bool = False) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.close()
        if not keep and not self._settings.keep:
            shutil.rmtree(worker.directory, ignore_errors=True)

    def _reproduce(self, case: Case) -> str:
        words = ["nominee", "chaos", "explore", self._scenario.file, "--name", self._scenario.name]
        return shlex.join([*words, "--case", str(case)] if case.perturbations else words)
