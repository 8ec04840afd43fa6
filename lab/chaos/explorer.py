"""Run the cases of an exploration, one after another, within a budget of time."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope
from nominee.lab.chaos.cases.exploration import Exploration, smallest_first
from nominee.lab.chaos.cases.observations import Activity, Undisturbed
from nominee.lab.chaos.cases.order import Coverage
from nominee.lab.chaos.cases.perturbations import Absence, Action, View, subject_of
from nominee.lab.chaos.cases.tolerance import (
    absences,
    changes,
    controlled,
    doubtful_waits,
    is_among,
    only_rules_count,
)
from nominee.lab.chaos.cases.trace import TracedWrite
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict, judge, with_history
from nominee.lab.chaos.clusters import Answered, Clusters
from nominee.lab.chaos.messages import CaseAnswer
from nominee.lab.chaos.outcomes.comparison import Outcomes, differences
from nominee.lab.chaos.outcomes.facts import Facts
from nominee.lab.chaos.outcomes.selection import Selection
from nominee.lab.jobs.job import ExecutorError
from nominee.lab.scenario.acting.control import Control
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.replacing import Programs, words_of
from nominee.lab.scenario.steps.processes.pause import Pause
from nominee.machinery.runtime.clock import Clock, SystemClock

API_SERVER = "apiserver"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationSettings:
    """The settings of an exploration.

    `case` None runs all of them, `cases_max` at most; or `random_count` of them, if that is not None, with up
    to six perturbations each. `stops`: at the first case that breaks. `simulate`: with another seed for
    each round, as long as there is time, and `rounds_max` rounds at most. `programs` are those that the
    scenario has in the places of components. `rules_only`: in disturbed runs steps and checks may fail, and
    only the invariants and the rules of rest count. `outcomes` are those that were recorded of the scenario;
    `replays`: their cases alone are run; `records`: the report has the facts of all undisturbed runs and of
    the cases that this selects from those of the first round; the other rounds run these. With both it has
    those of all recorded cases that hold, and there is one round if all is as it was recorded.
    `coverage` is of all scenarios: cases of what was disturbed least come first.
    """

    scope: Scope
    budget_seconds: float
    case: Case | None = None
    random_count: int | None = None
    cases_max: int | None = None
    simulate: bool = False
    rounds_max: int = 1
    stops: bool = False
    rules_only: bool = False
    outcomes: Outcomes | None = None
    replays: bool = False
    records: Selection | None = None
    programs: Programs = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def updates(self) -> bool:
        """Return whether recorded cases are recorded again, if they have another outcome now."""
        return self.replays and self.records is not None

    @property
    def has_cases(self) -> bool:
        """Return whether disturbed runs may follow the undisturbed one."""
        return self.cases_max != 0 or self.case is not None


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
    facts: list[Facts] = field(default_factory=list)
    """Of each undisturbed run that held."""
    is_new: bool = True
    """Whether there is something to record that is not recorded yet."""
    facts_of_cases: dict[str, list[Facts]] = field(default_factory=dict)
    rounds: int = 0
    """Rounds, each with another seed of the simulation."""
    runs: int = 0
    """Runs of the scenario, with the undisturbed ones."""
    seconds: float = 0.0
    error: str = ""

    @property
    def applied_count(self) -> int:
        """Return the number of cases whose perturbations took place; also the undisturbed run if it broke."""
        return sum(result.verdict.is_applied for result in self.results)


Say = Callable[[str], None]


class Explorer:
    """Runs the cases of one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        clusters: Clusters,
        settings: ExplorationSettings,
        say: Say,
        clock: Clock | None = None,
    ) -> None:
        self._scenario, self._clusters, self._settings, self._say = scenario, clusters, settings, say
        self._clock: Clock = clock or SystemClock()
        self._undisturbed = Undisturbed(is_asked=settings.has_cases)
        self._stopped = False
        self._refund = 0.0
        self._features: frozenset[str] = frozenset()
        self._trace: Sequence[TracedWrite] = ()
        self._seed = settings.scope.seed
        self._branches: dict[Case, Sequence[int]] = {}
        """Of the cases of the first round, if outcomes are recorded."""
        self._again: Sequence[Case] | None = None
        """The cases that are run, and no others, if this is not None."""
        if settings.replays:
            recorded = settings.outcomes.cases if settings.outcomes is not None else ()
            self._again = [Case.parse(text) for text in recorded][: settings.cases_max]
        is_new = (
            not settings.updates or settings.outcomes is None or self._seed not in settings.outcomes.seeds
        )
        self.report = Report(scenario=scenario, seed=settings.scope.seed, is_new=is_new)

    def run(self) -> Report:
        """Run the undisturbed scenario, and then the cases, until the time is over."""
        began = self._clock.monotonic()
        deadline = began + self._settings.budget_seconds
        try:
            for number in range(self._settings.rounds_max):
                self._seed = self._settings.scope.seed + number
                if not self._round(deadline) or not self.report.is_new:
                    break
        except ExecutorError as error:
            self.report.error = str(error)
        finally:
            self._clusters.close()
            self.report.clusters = self._clusters.count
            self.report.seconds = self._clock.monotonic() - began
        return self.report

    def _round(self, deadline: float) -> bool:
        """Run everything with one seed; return whether there is time for another one."""
        self.report.rounds += 1
        activity = self._plain()
        return activity is not None and self._cases(activity, deadline)

    def _plain(self) -> Activity | None:
        """Run the scenario without perturbations; return the activity of the processes, None if it fails."""
        ((result, answer),) = self._run([Case()])
        is_whole = result.verdict is Verdict.ACCEPTED and not result.violations
        if answer is None or not (result.verdict is Verdict.HELD or is_whole):
            self.report.results.append(result)
            if result.verdict is Verdict.BROKEN:
                self.report.broken.insert(0, result)
            elif result.verdict is Verdict.ACCEPTED:
                self._say(f"{'':8} accepted without any perturbation: {result.observation}")
            else:
                self.report.error = result.observation
            return None
        self.report.facts.append(answer.facts)
        if self._settings.cases_max == 0 or self._settings.replays:
            self.report.results.append(result)
        if self._settings.records is not None:
            self._branches.setdefault(Case(), answer.branches)
        activity = answer.observed_activity
        self._undisturbed = replace(
            self._undisturbed,
            needed={step.number: step.seconds for step in answer.scenario_result.steps},
            lasting=answer.lasting,
            launches=activity.launches,
            shapes=answer.shapes,
            work=answer.work,
        )
        self._features, self._trace = answer.features, answer.trace
        self.report.failpoints = sum(len(points) for points in activity.hits.values())
        return activity

    def _compared(self, result: CaseResult, answer: CaseAnswer) -> CaseResult:
        """Return the result of a run, broken if its outcome is not the recorded one."""
        outcomes = self._settings.outcomes
        recorded = outcomes.of(str(result.case), self._seed) if outcomes is not None else None
        if recorded is None:
            return result
        has_held = result.verdict is Verdict.HELD
        found = list(differences(answer.facts, recorded)) if has_held and answer.facts else []
        if self._settings.updates:
            self.report.is_new |= bool(found) or not has_held
            return result
        if result.verdict is Verdict.ERROR:
            # A request is refused that was not when the outcome was recorded, or the run does not end.
            return replace(result, verdict=Verdict.BROKEN)
        if not found:
            return result
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        observation = f"not the recorded outcome: {found[0]}{more}"
        result = replace(result, verdict=Verdict.BROKEN, observation=observation)
        return with_history(result, self._trace, answer.trace) if self._trace else result

    def _cases(self, activity: Activity, deadline: float) -> bool:
        """Run cases, and note those to record; return whether there is time for another round."""
        if not self._settings.has_cases:
            return self._clock.monotonic() < deadline
        exploration = Exploration(activity, self._scope(activity), self._features, self._settings.coverage)
        self.report.singles = exploration.single_count
        if self._again is not None:
            self._run_some(exploration, self._again)
        elif self._settings.case is not None:
            self._run_some(exploration, [self._settings.case])
        elif self._settings.random_count is not None:
            self._run_some(exploration, exploration.random_cases(self._settings.random_count))
        else:
            while self._run_some(exploration, self._due(exploration, deadline)):
                pass
        self._shrink(exploration)
        self.report.results += exploration.results
        self.report.broken = smallest_first([*self.report.broken, *exploration.broken()])
        self.report.left = exploration.left if self._settings.case is None else 0
        if self._settings.records is not None:
            self._note(exploration.results, self._settings.records)
        is_over = self._stopped or self._settings.case is not None
        return not is_over and self._clock.monotonic() < deadline + self._refund

    def _note(self, results: Sequence[CaseResult], selection: Selection) -> None:
        """Let the next rounds run selected cases of this one that held, and forget the facts of others."""
        held = [each.case for each in results if each.verdict is Verdict.HELD]
        if self.report.rounds == 1 and not self._settings.updates:
            chosen = selection.choose(
                self._branches[Case()],
                {str(each): [*self._branches[each], *map(subject_of, each.perturbations)] for each in held},
            )
            held = [Case.parse(text) for text in chosen]
        facts = self.report.facts_of_cases
        self.report.facts_of_cases = {str(each): facts[str(each)] for each in held if str(each) in facts}
        self._again = held

    def _shrink(self, exploration: Exploration) -> None:
        """Run the parts of the broken cases that have several perturbations and were not run before."""
        tried = {result.case for result in exploration.results}
        waiting = [result.case for result in exploration.broken() if len(result.case.perturbations) > 1]
        while waiting:
            smaller = [part for part in waiting.pop(0).parts() if part not in tried]
            tried.update(smaller)
            before = len(exploration.results)
            self._run_some(exploration, smaller, stops=False)
            ran = exploration.results[before:]
            waiting += [
                each.case
                for each in ran
                if each.verdict is Verdict.BROKEN and len(each.case.perturbations) > 1
            ]

    def _due(self, exploration: Exploration, deadline: float) -> Iterator[Case]:
        """Yield cases while there is time: the single ones, or, once these have ended, pairs."""
        are_single = exploration.left > 0
        while self._clock.monotonic() < deadline + self._refund and not (self._stopped or self._is_enough):
            if are_single and not exploration.left:
                return
            case = exploration.next_case()
            if case is None:
                return
            yield case

    @property
    def _is_enough(self) -> bool:
        """Return whether all cases were run that may be; the undisturbed run does not count."""
        most = self._settings.cases_max
        return most is not None and self.report.runs - self.report.rounds >= most

    def _run_some(self, exploration: Exploration, cases: Iterable[Case], *, stops: bool = True) -> bool:
        """Run cases and record them; return whether there may be others."""
        before = len(exploration.results)
        with closing(self._run(cases)) as results:
            for judged, answer in results:
                result = exploration.record(judged, answer.features if answer is not None else ())
                if answer is not None and self._settings.records is not None:
                    self.report.facts_of_cases.setdefault(str(result.case), []).append(answer.facts)
                    self._branches[result.case] = answer.branches
                if not result.verdict.is_applied:
                    # A case that did not take place takes no time from the others, up to another budget.
                    self._refund = min(self._refund + result.seconds, self._settings.budget_seconds)
                number = f"{len(exploration.results)}/{exploration.single_count}"
                self._say(f"{number:>8} {result.verdict.value:12} {result.novelty:3} new {result.case}")
                if result.verdict in (Verdict.BROKEN, Verdict.ACCEPTED):
                    self._say(f"{'':8} {result.observation}")
                if result.verdict is Verdict.BROKEN and stops and self._settings.stops:
                    self._stopped = True
                    break
        return len(exploration.results) > before and not self._stopped

    def _scope(self, activity: Activity) -> Scope:
        scope, scenario = self._settings.scope, self._scenario
        servers = sorted(process for process in activity.hits if process.startswith(f"{API_SERVER}-"))
        actions = [step.action for step in scenario.steps]
        may_lose = self._settings.rules_only or only_rules_count(scenario)
        restarted = {action.component for action in actions if isinstance(action, Control)}
        return replace(
            scope,
            seed=self._seed,
            # Without a supervisor that restarts it, a killed process stays away.
            actions=[each for each in scope.actions if scenario.cluster.restart or each is not Action.CRASH],
            may_lose=may_lose,
            # What is done late meanwhile may be gone, as a pod of a node that seems to be silent.
            absences=[each for each in scope.absences if may_lose or each is not Absence.AWAY],
            views=[each for each in scope.views if may_lose or each is not View.SILENT],
            steps=changes(scenario),
            absent=absences(scenario),
            pauses=frozenset(action.component for action in actions if isinstance(action, Pause)),
            lagging=servers[-1] if len(servers) > 1 else "",
            # A restart would take back the options of a step.
            served=[each for each in activity.calls if not is_among(each, {API_SERVER, "cloud", *restarted})],
            except_failpoints=frozenset(
                (process, name)
                for process, points in activity.hits.items()
                for name in points
                if any(
                    is_among(process, {component}) and name == own for component, own in controlled(scenario)
                )
            ),
        )

    def _run(self, cases: Iterable[Case]) -> Generator[tuple[CaseResult, CaseAnswer | None], None, None]:
        """Run cases; one that could not be run is an error."""
        rules_only = self._settings.rules_only
        known = replace(self._undisturbed, lasting=()) if rules_only else self._undisturbed
        with closing(self._clusters.run(cases, known, self._seed, rules_only=rules_only)) as answers:
            for each in answers:
                self.report.runs += 1
                result = self._compared(self._judged(each), each.answer)
                yield result, None if each.answer.error else each.answer

    def _judged(self, answered: Answered) -> CaseResult:
        case, answer = answered.case, answered.answer
        if answer.error:
            failed = CaseResult(case=case, verdict=Verdict.ERROR, observation=answer.error)
            return replace(failed, reproduce=self._reproduce(case))
        found = judge(
            case,
            answer.scenario_result,
            # Where rules alone count, a run of several perturbations says something without one of them.
            reached=answer.reached or (self._settings.rules_only and len(case.perturbations) > 1),
            unsettled=answer.unsettled,
            accepted_findings=self._scenario.accepted_findings,
            doubtful_waits=doubtful_waits(self._scenario, case),
        )
        directory = ""
        if found.verdict is Verdict.BROKEN:
            directory = self._clusters.keep()
            found = with_history(found, self._trace, answer.trace)
        return replace(found, seconds=answered.seconds, directory=directory, reproduce=self._reproduce(case))

    def _reproduce(self, case: Case) -> str:
        words = ["nominee", "chaos", "explore", self._scenario.file, "--name", self._scenario.name]
        if self._settings.simulate:
            words += ["--simulate", "--seed", str(self._seed)]
        words += ["--rules-only"] if self._settings.rules_only else []
        words += words_of(self._settings.programs)
        return shlex.join([*words, "--case", str(case)] if case.perturbations else words)
