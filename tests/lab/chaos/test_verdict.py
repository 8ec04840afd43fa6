"""The verdict on a disturbed run, and accepted findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.tolerance import doubtful_waits
from nominee.lab.chaos.cases.trace import TracedWrite
from nominee.lab.chaos.cases.verdict import CaseResult, Verdict, with_history
from nominee.lab.chaos.cases.verdict import judge as judge_run
from nominee.lab.chaos.rest.nodes import DOUBTFUL
from nominee.lab.scenario.conditions.failpoint import FailpointCondition
from nominee.lab.scenario.conditions.object import ObjectCondition
from nominee.lab.scenario.fields.options import AcceptedFinding
from nominee.lab.scenario.format.model import Scenario, Step
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.result import Outcome, ScenarioResult, StepResult, Violation
from nominee.lab.scenario.steps.expect import Expect, Mode
from nominee.lab.scenario.steps.objects.patch import Patch
from nominee.lab.scenario.steps.wait import Wait

GOING_BACK = Path(__file__).parents[3] / "scenarios" / "chaos-api-servers.yaml"
"""A scenario without WatchListClient."""
POD = ObjectCondition(kind="Pod", name="p")
CASE = Case.parse("scheduler:scheduler.bind.before=error")
SCENARIO = Scenario(
    name="s",
    steps=(
        Step(action=Expect(mode=Mode.NOW, condition=POD), verb="expect", line=1),
        Step(action=Wait(condition=POD), verb="wait", line=2),
        Step(
            action=Wait(condition=FailpointCondition(component="scheduler", name="scheduler.bind.before")),
            verb="wait",
            line=3,
        ),
    ),
)
EXPECT, WAIT, WAIT_FOR_MEMORY = 1, 2, 3
BROKEN = Violation(invariant="i", message="m")


def result(outcome: Outcome, line: int = EXPECT, violations: tuple[Violation, ...] = ()) -> ScenarioResult:
    failed = StepResult(
        number=1, verb="step", name="", line=line, started_seconds=0.0, seconds=0.0, outcome=outcome
    )
    return ScenarioResult(scenario="s", outcome=outcome, reason="why", steps=(failed,), violations=violations)


def judge(
    case: Case, ended: ScenarioResult, scenario: Scenario, *, reached: bool, unsettled: str = ""
) -> CaseResult:
    return judge_run(
        case,
        ended,
        reached=reached,
        unsettled=unsettled,
        accepted_findings=scenario.accepted_findings,
        doubtful_waits=doubtful_waits(scenario, case),
    )


@pytest.mark.parametrize(
    ("ended", "unsettled", "reached", "verdict"),
    [
        (result(Outcome.PASSED), "", True, Verdict.HELD),
        (result(Outcome.PASSED), "", False, Verdict.UNREACHED),
        (result(Outcome.PASSED), "pod p is pending", True, Verdict.BROKEN),
        (result(Outcome.FAILED), "", True, Verdict.BROKEN),
        (result(Outcome.FAILED, WAIT), "", True, Verdict.BROKEN),
        (result(Outcome.FAILED, WAIT_FOR_MEMORY), "", True, Verdict.INCONCLUSIVE),
        (result(Outcome.FAILED, WAIT_FOR_MEMORY), "pod p is pending", True, Verdict.BROKEN),
        (result(Outcome.FAILED, WAIT_FOR_MEMORY, (BROKEN,)), "", True, Verdict.BROKEN),
        (result(Outcome.ERROR), "", True, Verdict.ERROR),
    ],
)
def test_verdicts(ended: ScenarioResult, unsettled: str, reached: bool, verdict: Verdict) -> None:
    assert judge(CASE, ended, SCENARIO, reached=reached, unsettled=unsettled).verdict is verdict


def test_a_wait_for_the_memory_of_another_process_must_end() -> None:
    case = Case.parse("kubelet-0:kubelet.admit.before=crash")
    ended = result(Outcome.FAILED, WAIT_FOR_MEMORY)
    assert judge(case, ended, SCENARIO, reached=True).verdict is Verdict.BROKEN


PATCHED = replace(
    SCENARIO,
    steps=(
        Step(action=Patch(kind="Pod", name="p", patch={}), verb="patch", line=1),
        Step(action=Wait(condition=POD), verb="wait", line=WAIT),
    ),
)


@pytest.mark.parametrize(
    ("scenario", "case", "verdict"),
    [
        (PATCHED, "scheduler:scheduler.bind.after=recreate", Verdict.INCONCLUSIVE),
        (SCENARIO, "scheduler:scheduler.bind.after=recreate", Verdict.BROKEN),
        (PATCHED, "scheduler:scheduler.bind.after=crash", Verdict.BROKEN),
    ],
)
def test_a_pod_that_is_created_again_has_no_patch(scenario: Scenario, case: str, verdict: Verdict) -> None:
    assert judge(Case.parse(case), result(Outcome.FAILED, WAIT), scenario, reached=True).verdict is verdict


def accepting(case: str = "scheduler:*=error*", observation: str = "why") -> Scenario:
    accepted = AcceptedFinding(case=case, observation=observation, reason="as upstream", link="a-link")
    return replace(SCENARIO, accepted_findings=(accepted,))


@pytest.mark.parametrize(
    ("scenario", "ended", "unsettled", "verdict", "observation"),
    [
        (accepting(), result(Outcome.FAILED), "", Verdict.ACCEPTED, "why"),
        (accepting(), result(Outcome.FAILED, WAIT_FOR_MEMORY), "", Verdict.ACCEPTED, "why"),
        # Of another case, or with another text.
        (accepting(case="kubelet-*"), result(Outcome.FAILED), "", Verdict.BROKEN, "why"),
        (accepting(observation="w*y"), result(Outcome.FAILED), "", Verdict.ACCEPTED, "why"),
        (accepting(observation="other"), result(Outcome.FAILED), "", Verdict.BROKEN, "why"),
        # What is not accepted is reported, whatever else is.
        (accepting(), result(Outcome.FAILED, violations=(BROKEN,)), "", Verdict.BROKEN, "i: m"),
        (
            accepting(observation="pod a"),
            result(Outcome.PASSED),
            "pod a waits; pod b waits",
            Verdict.BROKEN,
            "the cluster does not come to rest: pod b waits",
        ),
        (
            accepting(observation="pod a"),
            result(Outcome.PASSED),
            "pod a waits",
            Verdict.ACCEPTED,
            "the cluster does not come to rest: pod a waits",
        ),
    ],
)
def test_an_accepted_finding_hides_no_other(
    scenario: Scenario, ended: ScenarioResult, unsettled: str, verdict: Verdict, observation: str
) -> None:
    found = judge(CASE, ended, scenario, reached=True, unsettled=unsettled)
    assert (found.verdict, found.observation) == (verdict, observation)


@pytest.mark.parametrize(("end", "is_accepted"), [("", False), (f", {DOUBTFUL}", True)])
@pytest.mark.parametrize(
    "case", ["", "autoscaler:apiserver.Update.nodes=lose-response", "kubelet:pods=stale"]
)
def test_a_taint_is_left_only_where_its_write_failed(case: str, end: str, is_accepted: bool) -> None:
    """The autoscaler knows it, also where a step of the scenario has killed the API server."""
    left = f"node pool-1 has the taint ToBeDeletedByClusterAutoscaler, and is not being deleted{end}"
    ended = result(Outcome.PASSED)
    found = judge(Case.parse(case) if case else Case(), ended, SCENARIO, reached=True, unsettled=left)
    assert found.verdict is (Verdict.ACCEPTED if is_accepted else Verdict.BROKEN)


def accepts_time(case: str, message: str) -> bool:
    """Return whether a violation by a condition's time is known of a case."""
    violation = Violation(invariant="conditions-keep-their-times", message=message)
    ended = result(Outcome.PASSED, violations=(violation,))
    found = judge(Case.parse(case) if case else Case(), ended, SCENARIO, reached=True)
    return found.verdict is Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("case", "is_accepted"),
    [
        ("kubelet-0:apiserver.Patch.pods=hang@5", True),
        ("apiserver:process=away@2+scheduler:pods=stale", True),
        ("scheduler:pods=stale", False),
        ("", False),
    ],
)
def test_a_transition_that_is_written_late_may_have_the_time_of_the_former_one(
    case: str, is_accepted: bool
) -> None:
    late = "the condition Ready became False, and its lastTransitionTime is that of its former status"
    for message, expected in ((late, is_accepted), (late.replace("became", "is still"), False)):
        assert accepts_time(case, message) is expected


@pytest.mark.parametrize(
    ("case", "is_accepted"),
    [
        ("apiserver:apiserver.storage.write.before=pause@33", True),
        ("apiserver:etcd.Txn.pods=slow@3", True),
        ("scheduler:apiserver.Bind.pods=slow", False),
        ("apiserver:pods=stale", False),
    ],
)
def test_a_binding_that_is_written_late_may_have_the_time_of_the_failed_attempt(
    case: str, is_accepted: bool
) -> None:
    late = "the condition PodScheduled became True, and its lastTransitionTime is that of its former status"
    assert accepts_time(case, late) is is_accepted


@pytest.mark.parametrize(
    ("case", "status", "is_accepted"),
    [
        ("apiserver:apiserver.storage.write.before=pause@15", "False", True),
        ("apiserver:etcd.Txn.poddisruptionbudgets=slow@5", "False", True),
        ("apiserver-1:etcd=cut@3", "False", True),
        ("apiserver:apiserver.storage.write.before=pause@15", "True", False),
        ("apiserver:etcd.Txn.poddisruptionbudgets=conflict@5", "False", False),
        ("apiserver:etcd.Range.poddisruptionbudgets=slow@5", "False", False),
    ],
)
def test_a_budget_that_an_eviction_uses_up_late_may_have_the_time_of_the_former_status(
    case: str, status: str, is_accepted: bool
) -> None:
    """An eviction that reads late, or that tries again, has its time after that."""
    became = f"the condition DisruptionAllowed became {status}"
    late = f"{became}, and its lastTransitionTime is that of its former status"
    assert accepts_time(case, late) is is_accepted


@pytest.mark.parametrize(
    ("case", "condition", "is_accepted"),
    [
        ("controllers:apiserver.Update.poddisruptionbudgets=slow@4", "DisruptionAllowed", True),
        ("controllers:apiserver.Update.poddisruptionbudgets=slow@4", "PodScheduled", False),
        ("controllers:apiserver.Update.poddisruptionbudgets=lose-request@4", "DisruptionAllowed", False),
        ("controllers:poddisruptionbudgets=stale@4", "DisruptionAllowed", False),
    ],
)
def test_a_status_that_waits_in_the_controllers_may_have_the_time_of_the_former_one(
    case: str, condition: str, is_accepted: bool
) -> None:
    late = f"the condition {condition} became False, and its lastTransitionTime is that of its former status"
    assert accepts_time(case, late) is is_accepted


@pytest.mark.parametrize(
    ("case", "is_accepted"),
    [
        ("controllers:apiserver.Delete.jobs=lose-request", True),
        ("apiserver:apiserver.write.before=error@42", True),
        ("apiserver:apiserver.write.after=error@42", False),
        ("apiserver:etcd=cut@5", False),
    ],
)
def test_a_cron_job_may_keep_an_old_job_that_could_not_be_deleted(case: str, is_accepted: bool) -> None:
    """A deletion that was done is no failure, and the API server repeats what etcd has not answered."""
    left = "cronjob default/c keeps 1 Jobs that are Complete, and its limit is 0"
    found = judge(Case.parse(case), result(Outcome.PASSED), SCENARIO, reached=True, unsettled=left)
    assert found.verdict is (Verdict.ACCEPTED if is_accepted else Verdict.BROKEN)


@pytest.mark.parametrize(
    ("case", "live", "verdict"),
    [
        ("controllers:apiserver.Create.pods=lose-response+controllers:pods=stale@2", 0, Verdict.ACCEPTED),
        ("controllers:apiserver.Create.pods=lose-responses@3", 0, Verdict.ACCEPTED),
        ("controllers:apiserver.Create.pods=lose-response+controllers:pods=stale@2", 1, Verdict.BROKEN),
        ("controllers:apiserver.Create.pods=slow+controllers:pods=stale@2", 0, Verdict.BROKEN),
        ("controllers:pods=stale@2", 0, Verdict.BROKEN),
    ],
)
def test_a_finished_job_may_keep_a_pod_whose_creation_had_no_answer(
    case: str, live: int, verdict: Verdict
) -> None:
    found = (
        f"job default/j has 2 live pods, and should have {live}; "
        "job default/j shows 0 active in its status, and its pods are 1"
    )
    held = result(Outcome.PASSED)
    assert judge(Case.parse(case), held, SCENARIO, reached=True, unsettled=found).verdict is verdict


@pytest.mark.parametrize(
    ("case", "became", "is_accepted"),
    [
        ("travel@3", "is still True", True),
        ("switch@3", "is still True", False),
        ("travel@3", "became False", False),
    ],
)
def test_a_kubelet_that_goes_back_in_time_has_new_times(case: str, became: str, is_accepted: bool) -> None:
    (scenario,) = read_file(GOING_BACK)
    message = f"the condition Ready {became}, and its lastTransitionTime changed"
    ended = result(
        Outcome.PASSED, violations=(Violation(invariant="conditions-keep-their-times", message=message),)
    )
    found = judge(Case.parse(f"kubelet-0:apiserver-1={case}"), ended, scenario, reached=True)
    assert (found.verdict is Verdict.ACCEPTED) is is_accepted


def test_the_reason_and_the_link_are_part_of_the_result() -> None:
    assert judge(CASE, result(Outcome.FAILED), accepting(), reached=True).accepted == (
        "as upstream (a-link)",
    )


def _write(seconds: float, subject: str, *changes: str) -> TracedWrite:
    return TracedWrite(seconds, int(seconds * 10), subject, changes)


@pytest.mark.parametrize(
    ("result", "subject"),
    [
        # The object that a failed step is about, and not the one that differs first.
        ({"objects": ("Pod default/b",)}, "Pod default/b"),
        ({"observation": "the cluster does not come to rest: pod default/b waits"}, "Pod default/b"),
        ({"observation": "pod default/b-2 waits"}, "Pod default/b-2"),
        ({"observation": "pod default/unknown waits"}, "Lease default/a"),
    ],
)
def test_a_finding_shows_the_object_at_fault(result: dict[str, Any], subject: str) -> None:
    undisturbed = [_write(1, "Lease default/a", "x"), _write(2, "Pod default/b", "y")]
    run = [
        _write(1, "Lease default/a", "z"),
        _write(3, "Pod default/b", "q"),
        _write(4, "Pod default/b-2", "q"),
    ]
    found = with_history(CaseResult(case=Case(), verdict=Verdict.BROKEN, **result), undisturbed, run)
    assert found.subject == subject
    assert found.difference is not None
    assert found.difference.subject == subject
    assert found.writes
