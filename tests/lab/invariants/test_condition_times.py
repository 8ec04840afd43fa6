"""The conditions of an object's status and the times of their transitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.objects.condition_times import ConditionTimes
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import apps, autoscaling, core, policy
from tests.lab.invariants.histories import BEGIN, History, leader, lease, pod, violations_of

Row = tuple[str, str, int]
"""Type, status and the seconds of the last transition after the history's begin."""


def _pod(*rows: Row, observed: int = 0) -> core.Pod:
    found = pod("p")
    found.metadata.generation = 1
    for type_, status, seconds in rows:
        row = found.status.conditions.add(type=type_, status=status, observedGeneration=observed)
        row.lastTransitionTime.seconds = int(BEGIN) + seconds
    return found


def _replica_set(type_: str, reason: str, seconds: int) -> apps.ReplicaSet:
    found = apps.ReplicaSet()
    found.metadata.name, found.metadata.namespace = "web", "default"
    row = found.status.conditions.add(type=type_, status="True", reason=reason)
    row.lastTransitionTime.seconds = int(BEGIN) + seconds
    return found


def _problems(history: History) -> list[str]:
    return [violation.message for violation in violations_of(ConditionTimes, history)]


def _budget(status: str, seconds: int, *, evicted: int = 0) -> policy.PodDisruptionBudget:
    """Return a budget; `evicted`: when the disruption of a pod that it counts was allowed, 0 for none."""
    found = policy.PodDisruptionBudget()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "web", "default", "uid-web"
    row = found.status.conditions.add(type="DisruptionAllowed", status=status, reason="x")
    row.lastTransitionTime.seconds = int(BEGIN) + seconds
    if evicted:
        found.status.disruptedPods["web-0"].seconds = int(BEGIN) + evicted
    return found


@pytest.mark.parametrize(
    ("evicted", "served", "count"),
    [(4, False, 0), (4, True, 1), (0, False, 1), (6, False, 1)],
    ids=["frozen", "it served others", "no eviction", "allowed later"],
)
def test_a_frozen_api_server_writes_late_that_an_eviction_was_allowed(
    evicted: int, served: bool, count: int
) -> None:
    history = History().put(_budget("False", 0), _budget("True", 4)).wait(3)
    history.put(*[lease("n1")] * served).wait(1).put(_budget("False", 4, evicted=evicted))
    assert len(_problems(history)) == count


def test_usual_writes() -> None:
    history = History().put(
        _pod(("PodScheduled", "False", 0)),
        _pod(("PodScheduled", "False", 0), ("Ready", "False", 1), observed=1),
        _pod(("PodScheduled", "True", 2), ("Ready", "False", 1), observed=1),
        _pod(("Ready", "False", 1)),
        _pod(("Ready", "False", 1), ("PodScheduled", "False", 4)),
    )
    assert _problems(history) == []


def test_two_transitions_in_a_second_have_one_time() -> None:
    history = History().put(_pod(("Ready", "False", 1)), _pod(("Ready", "True", 1)))
    assert _problems(history) == []


@pytest.mark.parametrize(
    ("writes", "problem"),
    [
        (
            [_pod(("Ready", "True", 0), ("Ready", "False", 0))],
            "the status has 2 conditions of the type Ready",
        ),
        (
            [_pod(("Ready", "True", 0)), _pod(("Ready", "True", 1))],
            "the condition Ready is still True, and its lastTransitionTime changed",
        ),
        (
            [*[_pod(("Ready", "False", 0))] * 4, _pod(("Ready", "True", 0))],
            "the condition Ready became True, and its lastTransitionTime is that of its former status",
        ),
        (
            [_pod(("Ready", "True", 0), observed=2)],
            "the condition Ready is of generation 2, and the object has generation 1",
        ),
    ],
)
def test_a_condition_contradicts_its_time(writes: list[core.Pod], problem: str) -> None:
    assert _problems(History().put(*writes)) == [problem]


ANSWER = Answer(
    client="controllers",
    method=Method.PATCH,
    outcome=Outcome.DONE,
    kind=kinds.POD,
    namespace="default",
    name="p",
    begin=4,
    end=5,
    resource_version=5,
    begin_time=BEGIN + 1.5,
)


@pytest.mark.parametrize(
    ("answers", "problems"),
    [
        ([ANSWER], 0),
        ([replace(ANSWER, begin_time=BEGIN + 4.5)], 1),
        ([replace(ANSWER, begin_time=BEGIN + 4.5, was_frozen=True)], 0),
        ([replace(ANSWER, resource_version=4)], 1),
        ([replace(ANSWER, method=Method.GET)], 1),
        ([], 1),
    ],
)
def test_a_write_that_was_sent_early_has_the_time_of_the_former_status(
    answers: list[Answer], problems: int
) -> None:
    unready = _pod(("Ready", "False", 0))
    history = History().put(unready, *[unready] * 3, _pod(("Ready", "True", 0)))
    check = Check(ComponentSettings(observes_answers=True), [ConditionTimes.about.name])
    assert [found for revision in history.revisions for found in check.observe(revision)] == []
    for answer in answers:
        check.observe_answer(answer)
    (result,) = check.finish(Evidence(now=history.now))
    assert len(result.violations) == problems
    assert result.exceptions.get("sent-early", 0) == 1 - problems


def test_a_clock_that_was_ahead_may_have_given_the_time_of_this_write() -> None:
    writes = [*[_pod(("Ready", "False", 5))] * 4, _pod(("Ready", "True", 5))]
    assert _problems(History().put(*writes)) == []


def test_a_patch_of_a_former_object_has_its_generation() -> None:
    created, late = _pod(("PodScheduled", "False", 0)), _pod(("PodScheduled", "False", 0), observed=2)
    history = History().put(created).delete(created).put(created)
    assert _problems(history.put(late)) == []
    assert len(_problems(history.put(*[created] * 15, late))) == 1


def test_a_kubelet_may_not_have_seen_that_its_node_was_lost() -> None:
    ready, ended = _pod(("ContainersReady", "True", 0), ("Ready", "True", 0)), "False"
    marked = _pod(("ContainersReady", "True", 0), ("Ready", "False", 1))
    stopped = _pod(("ContainersReady", ended, 9), ("Ready", ended, 9))
    assert _problems(History().put(ready, marked, stopped)) == []
    later = _pod(("ContainersReady", ended, 9), ("Ready", ended, 12))
    assert len(_problems(History().put(ready, marked, stopped, later))) == 1


@pytest.mark.parametrize(
    ("status", "condition", "ended", "probed", "count"),
    [
        ("False", "Ready", 1, False, 0),
        ("False", "PodReadyToStartContainers", 1, True, 0),
        ("False", "Ready", 5, False, 1),
        ("False", "Ready", None, False, 1),
        ("False", "Initialized", 1, False, 1),
        ("True", "ContainersReady", None, False, 0),
        ("True", "Ready", None, True, 1),
        ("True", "Ready", 1, False, 1),
    ],
    ids=["ended", "ended and probed", "later", "runs", "another", "began", "began and probed", "is gone"],
)
def test_a_kubelet_reports_late_what_its_containers_did(
    status: str, condition: str, ended: int | None, probed: bool, count: int
) -> None:
    other = "True" if status == "False" else "False"
    before, after = _pod((condition, other, 1)), _pod((condition, status, 1))
    state = after.status.containerStatuses.add(name="c").state
    if ended is None:
        state.running.startedAt.seconds = int(BEGIN) + 1
    else:
        state.terminated.finishedAt.seconds = int(BEGIN) + ended
    if probed:
        after.spec.containers[0].readinessProbe.periodSeconds = 1
    assert len(_problems(History().put(*[before] * 5, after))) == count


@pytest.mark.parametrize(
    ("condition", "ended", "ready", "again", "count"),
    [
        ("Ready", 1, False, False, 0),
        ("Ready", 1, False, True, 0),
        ("Ready", 5, False, False, 1),
        ("Ready", 1, True, True, 1),
        ("PodReadyToStartContainers", 1, False, False, 1),
    ],
    ids=["crashed", "runs again", "later", "is ready again", "of the sandbox"],
)
def test_a_kubelet_reports_a_crash_late(
    condition: str, ended: int, ready: bool, again: bool, count: int
) -> None:
    before, after = _pod((condition, "True", 1)), _pod((condition, "False", 1))
    row = after.status.containerStatuses.add(name="c", ready=ready)
    row.lastState.terminated.finishedAt.seconds = int(BEGIN) + ended
    if again:
        row.state.running.startedAt.seconds = int(BEGIN) + ended
    else:
        row.state.waiting.reason = "CrashLoopBackOff"
    assert len(_problems(History().put(*[before] * 5, after))) == count


@pytest.mark.parametrize("reason", ["gate", "second container"])
def test_a_pod_that_waits_for_more_than_a_container_was_ready_later(reason: str) -> None:
    before, after = _pod(("Ready", "False", 1)), _pod(("Ready", "True", 1))
    after.status.containerStatuses.add(name="c").state.running.startedAt.seconds = int(BEGIN) + 1
    if reason == "gate":
        after.spec.readinessGates.add(conditionType="example.com/ready")
    else:
        after.status.containerStatuses.add(name="d").state.running.startedAt.seconds = int(BEGIN) + 4
    assert len(_problems(History().put(*[before] * 5, after))) == 1


@pytest.mark.parametrize(("node", "count"), [("n1", 0), ("", 1)])
def test_a_second_scheduler_and_a_kubelet_write_pod_scheduled(node: str, count: int) -> None:
    """The binding of the second scheduler was refused, as the pod was bound."""
    states = [("True", 0), ("False", 1), ("True", 1)]
    bound, refused, back = (_pod(("PodScheduled", *state)) for state in states)
    for each in (bound, refused, back):
        each.spec.nodeName = node
    assert len(_problems(History().put(bound, *[refused] * 4, back))) == count
    assert len(_problems(History().put(bound, back))) == 1, "the status stays"


@pytest.mark.parametrize(
    ("holders", "seconds", "status", "count"),
    [
        (("a", "b"), 0, "False", 0),
        (("a", "b"), 3, "False", 1),
        (("a", "b"), 0, "True", 1),
        (("a", "a"), 0, "False", 1),
    ],
    ids=["it has not seen the condition", "it has had time", "no scheduler writes this", "the same leader"],
)
def test_a_new_leader_may_not_have_seen_the_condition_of_the_former_one(
    holders: tuple[str, str], seconds: int, status: str, count: int
) -> None:
    leases = [leader(holder) for holder in holders]
    before, after = _pod(("PodScheduled", status, 0)), _pod(("PodScheduled", status, 3))
    assert len(_problems(History().put(leases[0], before, leases[1]).wait(seconds).put(after))) == count
    assert len(_problems(History().put(*leases, before).wait(seconds).put(after))) == 1, "the leader itself"


def test_another_reason_is_a_transition_of_a_replica_failure_only() -> None:
    failures = [_replica_set("ReplicaFailure", reason, 3 * number) for number, reason in enumerate("ab")]
    assert _problems(History().put(*failures)) == []
    others = [_replica_set("Other", reason, 3 * number) for number, reason in enumerate("ab")]
    assert len(_problems(History().put(*others))) == 1


def test_users_write_their_own_conditions() -> None:
    writes = [*[_pod(("example.com/ready", "False", 0))] * 4, _pod(("example.com/ready", "True", 0))]
    assert _problems(History().put(*writes)) == []


def test_kinds_with_conditions_are_checked() -> None:
    assert {kinds.POD, kinds.NODE, kinds.DEPLOYMENT, kinds.JOB, kinds.NAMESPACE} <= ConditionTimes.kinds
    assert kinds.EVENT not in ConditionTimes.kinds


def test_a_condition_that_had_another_status_in_the_same_sync() -> None:
    def autoscaler(reason: str, seconds: int) -> autoscaling.HorizontalPodAutoscaler:
        found = autoscaling.HorizontalPodAutoscaler()
        found.metadata.name, found.metadata.namespace = "web", "default"
        row = found.status.conditions.add(type="AbleToScale", status="False", reason=reason)
        row.lastTransitionTime.seconds = int(BEGIN) + seconds
        return found

    def problems(reason: str) -> list[str]:
        writes = (autoscaler(reason, 0), autoscaler(reason, 15))
        return _problems(History().put(*writes))

    assert problems("FailedUpdateScale") == []
    assert problems("FailedGetScale") != []
