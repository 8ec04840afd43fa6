"""The loop of an exploration, on clusters that answer from a table."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope
from nominee.lab.chaos.cases.observations import Undisturbed
from nominee.lab.chaos.cases.perturbations import Action, View
from nominee.lab.chaos.cases.verdict import Verdict
from nominee.lab.chaos.clusters import Answered
from nominee.lab.chaos.explorer import ExplorationSettings, Explorer, Report
from nominee.lab.chaos.messages import CaseAnswer
from nominee.lab.chaos.outcomes.comparison import Outcomes
from nominee.lab.chaos.outcomes.selection import Selection
from nominee.lab.scenario.fields.options import AcceptedFinding, ClusterOptions
from nominee.lab.scenario.format.model import Scenario, Step
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.machinery.runtime.clock import SystemClock

ACTIVITY = {"hits": {"scheduler": {"s.a": 1, "s.b": 1, "s.c": 1}}, "calls": {}, "launches": {}, "kinds": []}
HELD = CaseAnswer(
    result=ScenarioResult(scenario="s", outcome=Outcome.PASSED).as_json(), reached=True, activity=ACTIVITY
)
UNREACHED = replace(HELD, reached=False)
SCENARIO = Scenario(name="s")


def unsettled(reason: str) -> CaseAnswer:
    return replace(HELD, unsettled=reason)


class CountedClock(SystemClock):
    """A clock that moves when the cases say so."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class TableClusters:
    """Answers by case; a case takes so many seconds."""

    answers: Mapping[str, CaseAnswer]
    seconds: float = 0.0
    count: int = 0
    clock: CountedClock = field(default_factory=CountedClock)

    def run(
        self, cases: Iterable[Case], undisturbed: Undisturbed, seed: int, *, rules_only: bool = False
    ) -> Generator[Answered, None, None]:
        for case in cases:
            self.clock.seconds += self.seconds
            yield Answered(case, self.answers.get(str(case), HELD), self.seconds)

    def keep(self) -> str:
        return ""

    def close(self) -> None:
        pass


def explore(clusters: TableClusters, scenario: Scenario = SCENARIO, **settings: object) -> Report:
    scope = Scope(actions=(Action.CRASH,), hits=1)
    fields: dict[str, object] = {"scope": scope, "budget_seconds": 60.0, **settings}
    options = ExplorationSettings(**fields)  # type: ignore[arg-type]  # fields of several types
    return Explorer(scenario, clusters, options, lambda _: None, clusters.clock).run()


def cases(report: Report) -> list[str]:
    return [str(each.case) for each in report.results]


def test_an_accepted_finding_does_not_end_an_exploration() -> None:
    accepted = AcceptedFinding(case="*:s.a=crash", observation="pod p", reason="as upstream", link="x")
    scenario = replace(SCENARIO, accepted_findings=(accepted,))
    clusters = TableClusters({"scheduler:s.a=crash": unsettled("pod p waits")})
    report = explore(clusters, scenario, stops=True)
    verdicts = {str(each.case): each.verdict for each in report.results}
    assert verdicts.pop("scheduler:s.a=crash") is Verdict.ACCEPTED
    assert list(verdicts.values()) == [Verdict.HELD] * 2
    assert report.broken == []


def test_a_finding_ends_an_exploration_if_asked() -> None:
    clusters = TableClusters({f"scheduler:s.{name}=crash": unsettled("pod p waits") for name in "abc"})
    assert len(explore(clusters, stops=True).broken) == 1
    assert len(explore(clusters).broken) == 3


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 1), (None, 3)])
def test_a_number_of_random_cases(count: int | None, expected: int) -> None:
    report = explore(TableClusters({}), random_count=count)
    assert len(report.results) == expected
    places = {each.place for result in report.results for each in result.case.perturbations}
    assert len(places) == sum(len(result.case.perturbations) for result in report.results)


@pytest.mark.parametrize(("most", "expected"), [(0, [""]), (2, None), (9, None)])
def test_at_most_so_many_cases_are_run(most: int, expected: list[str] | None) -> None:
    report = explore(TableClusters({}), cases_max=most)
    assert len(report.results) == max(min(most, 3), 1)
    if expected is not None:
        assert cases(report) == expected, "the undisturbed run"
        assert report.applied_count == 1


def test_a_recording_runs_nothing_again_that_did_not_hold() -> None:
    clusters = TableClusters({f"scheduler:s.{name}=crash": unsettled("pod p waits") for name in "abc"})
    report = explore(clusters, rounds_max=2, records=Selection())
    assert sorted(cases(report)) == [f"scheduler:s.{name}=crash" for name in "abc"]


def test_a_killed_process_must_be_restarted() -> None:
    scenario = replace(SCENARIO, cluster=ClusterOptions(restart=False))
    report = explore(TableClusters({}), scenario)
    assert cases(report) == []
    assert report.applied_count == 0


@pytest.mark.parametrize(
    ("answer", "applied"), [(UNREACHED, 0), (CaseAnswer(error="no cluster"), 0), (HELD, 3)]
)
def test_cases_that_took_place_are_counted(answer: CaseAnswer, applied: int) -> None:
    answers = {f"scheduler:s.{name}=crash": answer for name in "abc"}
    assert explore(TableClusters(answers)).applied_count == applied


@pytest.mark.parametrize(
    ("answer", "seconds", "count"),
    [
        # The undisturbed run and two cases; the third has no time.
        (HELD, 20.0, 2),
        (UNREACHED, 20.0, 3),
        # At most another budget is given back.
        (UNREACHED, 45.0, 2),
    ],
)
def test_a_case_that_did_not_take_place_takes_no_budget(
    answer: CaseAnswer, seconds: float, count: int
) -> None:
    answers = {f"scheduler:s.{name}=crash": answer for name in "abc"}
    clusters = TableClusters(answers, seconds)
    report = explore(clusters, budget_seconds=59.0)
    assert len(report.results) == count
    assert report.left == 3 - count


def test_the_parts_of_a_broken_pair_are_run() -> None:
    pair = "scheduler:s.a=crash+scheduler:s.b=crash"
    answers = {name: unsettled("pod p waits") for name in (pair, "scheduler:s.b=crash")}
    report = explore(TableClusters(answers), case=Case.parse(pair))
    assert cases(report) == [pair, "scheduler:s.b=crash", "scheduler:s.a=crash"]
    assert [str(each.case) for each in report.broken] == ["scheduler:s.b=crash", pair]


@pytest.mark.parametrize("may_fail", [False, True])
def test_pods_are_removed_and_processes_are_away_or_blind_only_where_rules_alone_count(
    may_fail: bool,
) -> None:
    hits = {"scheduler": {"scheduler.bind.before": 1}, "apiserver": {"apiserver.write.before": 1}}
    activity = {
        **ACTIVITY,
        "hits": hits,
        "calls": {"scheduler": {"apiserver.Watch.pods": 1}},
        "kinds": ["pods"],
    }
    scenario = replace(
        SCENARIO,
        steps=(Step(action=Apply(manifests=()), verb="apply", line=1),) * 2,
        steps_may_fail=may_fail,
        checks_may_fail=may_fail,
    )
    actions = (Action.CRASH, Action.RECREATE, Action.REMOVE)
    scope = Scope(actions=actions, views=(View.SILENT,), partitions=(), hits=1, jumps=())
    report = explore(TableClusters({"": replace(HELD, activity=activity)}), scenario, scope=scope)
    losing = {
        "scheduler:scheduler.bind.before=remove",
        "apiserver:apiserver.write.before=recreate",
        "apiserver:apiserver.write.before=remove",
        "scheduler:process=away@2",
        "scheduler:pods=silent",
        "scheduler:pods=silent@2",
    }
    assert set(cases(report)) == {
        "scheduler:scheduler.bind.before=crash",
        "scheduler:scheduler.bind.before=recreate",
        "apiserver:apiserver.write.before=crash",
        "scheduler:process=restart@2",
        "scheduler:process=crash-loop@2",
        *(losing if may_fail else ()),
    }


def test_a_request_that_is_refused_now_is_a_finding_where_an_outcome_is_recorded() -> None:
    result = ScenarioResult(scenario="s", outcome=Outcome.ERROR, reason="step 2: refused").as_json()
    clusters = TableClusters({"": replace(HELD, result=result)})
    assert explore(clusters).error == "step 2: refused"
    report = explore(clusters, outcomes=Outcomes((0,), {}))
    assert [each.observation for each in report.broken] == ["step 2: refused"]
    assert explore(clusters, outcomes=Outcomes((1,), {})).broken == []


def test_a_run_that_does_not_end_is_a_finding_where_an_outcome_is_recorded() -> None:
    clusters = TableClusters({"": CaseAnswer(error="200001 callbacks ran without time passing")})
    assert explore(clusters).error == "200001 callbacks ran without time passing"
    report = explore(clusters, outcomes=Outcomes((0,), {}))
    assert [each.observation for each in report.broken] == ["200001 callbacks ran without time passing"]


def test_in_a_storm_the_places_of_a_process_differ_and_no_case_is_alone() -> None:
    activity = {
        **ACTIVITY,
        "hits": {"scheduler": {"scheduler.bind.before": 2, "scheduler.bind.after": 2}, "kubelet-0": {}},
        "calls": {"scheduler": {}, "kubelet-0": {}},
    }
    scope = Scope(together=6, hits=1, jumps=(), losses=(), views=())
    report = explore(TableClusters({"": replace(HELD, activity=activity)}), scope=scope, rules_only=True)
    first = Case.parse(cases(report)[0])
    assert len({each.place for each in first.perturbations}) == len(first.perturbations) == 2
