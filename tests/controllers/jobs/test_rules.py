"""Rules of Jobs: indexes, policies, back-off, pods, conditions, expiry."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.jobs import failure_policy, indexes, success_policy
from nominee.controllers.jobs.backoff import Failures, ended_at, of_index
from nominee.controllers.jobs.conditions import condition, ensure
from nominee.controllers.jobs.expiry import remaining_seconds
from nominee.controllers.jobs.pods import TRACKING, is_failed, new_pod, replaces_failed_only, surplus
from nominee.machinery.api.pb import batch, core
from nominee.machinery.wire.values import index_ranges
from tests.controllers.builders import EPOCH, pod, stamp
from tests.controllers.builders import condition as row
from tests.controllers.jobs.builders import job, tracked


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([0], "0"),
        ([0, 1], "0,1"),
        ([0, 1, 2], "0-2"),
        ([1, 3, 4, 5, 7], "1,3-5,7"),
        ([0, 1, 3, 4], "0,1,3,4"),
    ],
)
def test_indexes_are_written_as_ranges_and_read_again(numbers: list[int], text: str) -> None:
    assert index_ranges.to_text(set(numbers)) == text
    assert index_ranges.parse(text, 100) == set(numbers)


@pytest.mark.parametrize(
    ("text", "completions", "numbers"),
    [("0-5", 3, {0, 1, 2}), ("2,7", 3, {2}), ("x,1,2-y", 9, {1}), ("-1", 9, set())],
)
def test_indexes_that_are_too_large_or_cannot_be_read_are_skipped(
    text: str, completions: int, numbers: set[int]
) -> None:
    assert index_ranges.parse(text, completions) == numbers


def test_the_first_free_indexes() -> None:
    assert indexes.first_free(6, {0, 2, 3}, 2) == [1, 4]
    assert indexes.first_free(4, {0, 2, 3}, 9) == [1]


def _failed(name: str = "p", *, code: int = 3, container: str = "c", init: bool = False) -> core.Pod:
    of = pod(name, phase="Failed")
    rows = of.status.initContainerStatuses if init else of.status.containerStatuses
    rows.add(name=container).state.terminated.exitCode = code
    return of


def _rule(action: str, **requirement: Any) -> dict[str, Any]:
    return {"action": action, **requirement}


def _codes(operator: str, *values: int, **more: str) -> dict[str, Any]:
    return {"onExitCodes": {"operator": operator, "values": list(values), **more}}


DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rules", "of", "action"),
    [
        ([_rule("FailJob", **_codes("In", 3))], _failed(), "FailJob"),
        ([_rule("FailJob", **_codes("In", 4))], _failed(), ""),
        ([_rule("Ignore", **_codes("NotIn", 4))], _failed(), "Ignore"),
        ([_rule("Ignore", **_codes("NotIn", 3))], _failed(), ""),
        ([_rule("Ignore", **_codes("NotIn", 3))], _failed(code=0), ""),  # success is never matched
        ([_rule("FailJob", **_codes("In", 3, containerName="d"))], _failed(), ""),
        ([_rule("FailJob", **_codes("In", 3, containerName="d"))], _failed(container="d"), "FailJob"),
        ([_rule("FailIndex", **_codes("In", 3))], _failed(init=True), "FailIndex"),
        ([_rule("Ignore", **DISRUPTED)], pod(conditions=[row("DisruptionTarget")]), "Ignore"),
        ([_rule("Ignore", **DISRUPTED)], pod(conditions=[row("DisruptionTarget", "False")]), ""),
        ([_rule("Count", **_codes("In", 3)), _rule("FailJob", **_codes("In", 3))], _failed(), "Count"),
    ],
)  # fmt: skip
def test_the_first_rule_that_a_failed_pod_matches_decides(
    rules: list[dict[str, Any]], of: core.Pod, action: str
) -> None:
    found = failure_policy.match(job(podFailurePolicy={"rules": rules}), of)
    assert (found.action, found.counts) == (action, action != "Ignore")


def test_why_a_policy_fails_the_job() -> None:
    codes = job(
        podFailurePolicy={"rules": [_rule("Count", **_codes("In", 1)), _rule("FailJob", **_codes("In", 3))]}
    )
    assert failure_policy.fail_message(codes, [_failed(code=1), _failed("q")]) == (
        "Container c for pod default/q failed with exit code 3 matching FailJob rule at index 1"
    )
    disrupted = pod(phase="Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])
    by_condition = job(podFailurePolicy={"rules": [_rule("FailJob", **DISRUPTED)]})
    assert failure_policy.fail_message(by_condition, [disrupted]) == (
        "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0"
    )


@pytest.mark.parametrize(
    ("rules", "completed", "met"),
    [
        ([{"succeededCount": 2}], {0, 4}, "Matched rules at index 0"),
        ([{"succeededCount": 3}], {0, 4}, ""),
        ([{"succeededIndexes": "0-2"}], {0, 1, 2}, "Matched rules at index 0"),
        ([{"succeededIndexes": "0-2"}], {0, 1, 4}, ""),
        ([{"succeededIndexes": "0-2", "succeededCount": 2}], {0, 2, 4}, "Matched rules at index 0"),
        ([{"succeededIndexes": "0-2", "succeededCount": 2}], {0, 3, 4}, ""),
        ([{"succeededCount": 5}, {"succeededIndexes": "4"}], {4}, "Matched rules at index 1"),
        ([{"succeededIndexes": "9"}], {4}, ""),
        ([{"succeededIndexes": "0,2-3,9"}], {0, 2, 3}, "Matched rules at index 0"),
        ([{"succeededIndexes": "1-2,4"}], {0, 3, 4}, ""),
    ],
)
def test_which_indexes_meet_a_success_policy(
    rules: list[dict[str, Any]], completed: set[int], met: str
) -> None:
    of = job(completionMode="Indexed", completions=5, successPolicy={"rules": rules})
    assert success_policy.matching_rule(of, completed) == met


def test_a_success_policy_may_name_two_billion_indexes() -> None:
    most = 2**31 - 1
    for count, met in ((2, "Matched rules at index 0"), (3, "")):
        rules = [{"succeededIndexes": f"0-{most - 1}", "succeededCount": count}]
        of = job(completionMode="Indexed", completions=most, successPolicy={"rules": rules})
        assert success_policy.matching_rule(of, {0, most - 1}) == met


@pytest.mark.parametrize("text", ["9" * 5000, "-1", "x", "²", "9" * 20])
def test_an_annotation_that_cannot_be_an_index(text: str) -> None:
    odd = pod(annotations={indexes.INDEX: text, indexes.FAILURES: text})
    assert (indexes.index_of(odd), indexes.counted_failures(odd)) == (None, 0)


@pytest.mark.parametrize(
    ("count", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (99, 600)]
)
def test_the_delay_doubles_with_each_failure(count: int, seconds: int) -> None:
    assert Failures(count, 1000.0).remaining_seconds(1000.0) == seconds
    assert Failures(count, 1000.0).remaining_seconds(1e9) == 0


def _ended(at: int) -> core.Pod:
    of = pod(uid=f"{at}")
    of.status.containerStatuses.add(name="c").state.terminated.finishedAt.seconds = EPOCH + at
    return of


def test_a_success_ends_the_back_off_of_what_failed_before_it() -> None:
    before = Failures(3, 1.0)
    assert before.with_ended([], []) == before
    assert before.with_ended([], [_ended(7), _ended(5)]) == Failures(5, EPOCH + 7.0)
    assert before.with_ended([_ended(6)], []) == Failures()
    assert before.with_ended([_ended(6)], [_ended(7), _ended(5), _ended(9)]) == Failures(2, EPOCH + 9.0)
    assert before.with_ended([_ended(6)], [_ended(6)]) == Failures()


def test_when_a_pod_ended() -> None:
    two = _ended(5)
    two.status.containerStatuses.add(name="d").state.terminated.finishedAt.seconds = EPOCH + 8
    assert ended_at(two) == EPOCH + 8
    two.status.containerStatuses.add(name="e")  # runs
    two.status.conditions.add(type="Ready", status="False").lastTransitionTime.seconds = EPOCH + 9
    assert ended_at(two) == EPOCH + 9
    deleted = pod(uid="u", deleted=True)
    deleted.metadata.deletionGracePeriodSeconds = 30
    assert ended_at(deleted) == EPOCH - 30
    assert ended_at(pod(uid="u", created=4)) == EPOCH + 4


def test_an_index_has_a_delay_of_its_own() -> None:
    replaced = _ended(0)
    replaced.metadata.annotations.update({indexes.FAILURES: "1", indexes.IGNORED_FAILURES: "1"})
    assert of_index(replaced) == Failures(3, float(EPOCH))
    assert of_index(None) == Failures()


def test_a_new_pod_has_the_finalizer_and_without_an_index_nothing_else() -> None:
    made = new_pod(job())
    assert made.metadata.generateName == "work-"
    assert list(made.metadata.finalizers) == [TRACKING]
    assert not made.spec.hostname
    assert not made.metadata.annotations
    owner = made.metadata.ownerReferences[0]
    assert (owner.kind, owner.name, owner.controller, owner.blockOwnerDeletion) == ("Job", "work", True, True)


def test_a_pod_of_an_index_knows_it() -> None:
    of = job(completionMode="Indexed", completions=3)
    made = new_pod(of, 2)
    assert made.metadata.generateName == "work-2-"
    assert made.metadata.annotations[indexes.INDEX] == made.metadata.labels[indexes.INDEX] == "2"
    assert made.spec.hostname == "work-2"
    variable = made.spec.containers[0].env[0]
    assert variable.name == "JOB_COMPLETION_INDEX"
    assert variable.valueFrom.fieldRef.fieldPath == f"metadata.labels['{indexes.INDEX}']"
    assert not of.spec.template.spec.containers[0].env
    long = job("j" * 63, completionMode="Indexed", completions=3)
    assert new_pod(long, 2).metadata.generateName == "j" * 55 + "-2-"
    long.spec.template.spec.containers[0].env.add(name="JOB_COMPLETION_INDEX", value="mine")
    assert [v.value for v in new_pod(long, 2).spec.containers[0].env] == ["mine"]


def test_the_failures_of_an_index_are_handed_on() -> None:
    rules = [_rule("Ignore", **_codes("In", 4))]
    of = job(
        completionMode="Indexed", completions=3, backoffLimitPerIndex=2, podFailurePolicy={"rules": rules}
    )
    first = new_pod(of, 1)
    assert first.metadata.annotations[indexes.FAILURES] == "0"
    assert indexes.IGNORED_FAILURES not in first.metadata.annotations
    ignored = _failed(code=4)
    ignored.metadata.annotations[indexes.FAILURES] = "1"
    second = new_pod(of, 1, ignored)
    assert indexes.counted_failures(second) == 1
    assert indexes.all_failures(second) == 2
    second.status.CopyFrom(_failed(code=3).status)
    third = new_pod(of, 1, second)
    assert (indexes.counted_failures(third), indexes.all_failures(third)) == (2, 3)


@pytest.mark.parametrize(
    ("spec", "of", "failed"),
    [
        ({}, pod(phase="Failed"), True),
        ({}, pod(phase="Running", deleted=True), True),
        ({}, pod(phase="Succeeded", deleted=True), False),
        ({"podReplacementPolicy": "Failed"}, pod(phase="Running", deleted=True), False),
        ({"podFailurePolicy": {"rules": []}}, pod(phase="Running", deleted=True), False),
        ({"podReplacementPolicy": "Failed"}, pod(phase="Failed", deleted=True), True),
    ],
)
def test_a_deleted_pod_counts_as_failed_unless_only_failed_ones_are_replaced(
    spec: dict[str, Any], of: core.Pod, failed: bool
) -> None:
    assert is_failed(job(**spec), of) is failed
    assert replaces_failed_only(job(**spec)) is ("podReplacementPolicy" in spec or "podFailurePolicy" in spec)


def test_which_active_pods_are_surplus() -> None:
    young, old = pod("young", uid="a", node="n1", created=9), pod("old", uid="b", node="n1")
    unassigned = pod("unassigned", uid="c")
    assert surplus(job(), [old, young, unassigned], 2) == [unassigned, young]
    assert surplus(job(), [old, young], 0) == []
    for of, restarts in ((young, 1), (old, 2)):
        of.spec.initContainers.add(name="sidecar", restartPolicy="Always")
        of.status.initContainerStatuses.add(name="sidecar", restartCount=restarts)
    assert surplus(job(), [old, young], 1) == [old]


def test_repeated_and_invalid_indexes_are_surplus() -> None:
    of = job(completionMode="Indexed", completions=2)
    pods = [
        tracked(pod("zero", uid="a", node="n1"), 0),
        tracked(pod("again", uid="b"), 0),
        tracked(pod("one", uid="c"), 1),
        tracked(pod("too large", uid="d"), 2),
        pod("without", uid="e"),
    ]
    assert {p.metadata.name for p in surplus(of, pods, 0)} == {"again", "too large", "without"}
    assert {p.metadata.name for p in surplus(of, pods, 4)} == {"again", "too large", "without", "one"}


def test_a_condition_that_is_not_there_is_not_set_to_false() -> None:
    status = batch.JobStatus()
    assert not ensure(status, condition("Suspended", "R", "m", 1.0, status="False"))
    assert ensure(status, condition("Suspended", "R", "m", 1.0))
    assert not ensure(status, condition("Suspended", "R", "m", 2.0))
    assert status.conditions[0].lastProbeTime.seconds == 1
    assert ensure(status, condition("Suspended", "S", "m", 3.0, status="False"))
    assert [(c.reason, c.status, c.lastTransitionTime.seconds) for c in status.conditions] == [
        ("S", "False", 3)
    ]


@pytest.mark.parametrize(
    ("ttl", "type_", "now", "left"),
    [
        (None, "Complete", 0, None),
        (5, "Suspended", 0, None),
        (5, "Complete", 0, 5.0),
        (5, "Failed", 3, 2.0),
        (5, "Complete", 9, 0.0),
        (0, "Complete", 0, 0.0),
    ],
)
def test_when_a_finished_job_is_deleted(ttl: int | None, type_: str, now: int, left: float | None) -> None:
    end = row(type_, lastTransitionTime=stamp(0))
    of = job(ttlSecondsAfterFinished=ttl, status={"conditions": [end]})
    assert remaining_seconds(of, float(EPOCH + now)) == left
    of.metadata.deletionTimestamp.seconds = EPOCH
    assert remaining_seconds(of, float(EPOCH + now)) is None
