"""Replica sets and disruption budgets as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from controllers.disruption.budget import (
    Scale,
    SyncError,
    expected_and_desired,
    failed_status,
    not_deleted,
    recheck_seconds,
    stale_disruption,
    status_of,
    unmanaged,
)
from controllers.replica_sets.expectations import EXPECTATION_SECONDS_MAX, Expectations
from controllers.replica_sets.replicas import BURST_MAX, claim, is_available, plan, pod_of, to_delete
from controllers.replica_sets.replicas import status_of as replicas_status
from machinery.api.objects import ObjectKey, get_condition
from machinery.api.pb import core, policy
from machinery.runtime.clock import to_time
from tests.controllers.builders import EPOCH, budget, owned_by, pod, replica_set, stamp

NOW = to_time(float(EPOCH + 1000))
WEB = {"app": "web"}
MINE = [owned_by("set")]
KEY = ObjectKey("default", "web")


# --- replica sets ---


def test_which_pods_are_a_sets() -> None:
    of = replica_set(uid="set")
    pods = [
        pod("own", labels=WEB, owners=MINE),
        pod("strayed", labels={"app": "x"}, owners=MINE),
        pod("orphan", labels=WEB),
        pod("ended orphan", labels=WEB, phase="Failed"),
        pod("ending orphan", labels=WEB, deleted=True),
        pod("another's", labels=WEB, owners=[owned_by("other")]),
        pod("stranger", labels={"app": "x"}),
    ]
    found = claim(of, pods)
    assert [p.metadata.name for p in found.owned] == ["own"]
    assert [p.metadata.name for p in found.adopt] == ["orphan"]
    assert [p.metadata.name for p in found.release] == ["strayed"]
    ending = claim(replica_set(uid="set", deleted=True), pods)
    assert (ending.adopt, ending.release) == ((), ())


COST = "controller.kubernetes.io/pod-deletion-cost"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod(uid="b"), pod(uid="a", node="n1")),
        (pod(uid="b", node="n1", phase="Pending"), pod(uid="a", node="n1", phase="Running")),
        (pod(uid="b", node="n1", phase="Unknown"), pod(uid="a", node="n1", phase="Running")),
        (pod(uid="b", node="n1", phase="Running"), pod(uid="a", node="n1", phase="Running", ready=True)),
        (pod(uid="b", annotations={COST: "-1"}), pod(uid="a")),
        (pod(uid="b"), pod(uid="a", annotations={COST: "1"})),
        (pod(uid="b", node="crowded"), pod(uid="a", node="n1")),
        (pod(uid="b", node="n1", ready=True, ready_since=990), pod(uid="a", node="n1", ready=True)),
        (pod(uid="b", restarts=2), pod(uid="a", restarts=1)),
        (pod(uid="b", created=990), pod(uid="a", created=0)),
        # Nearly as old counts as as old: the uid decides.
        (pod(uid="a", created=1), pod(uid="b", created=30)),
    ],
)
def test_which_of_two_pods_goes(first: core.Pod, second: core.Pod) -> None:
    siblings = {"crowded": 3, "n1": 1}
    for pods in ([first, second], [second, first]):
        gone = to_delete(pods, 1, siblings, float(EPOCH + 1000))
        assert gone == [first]


@pytest.mark.parametrize(
    ("wanted", "there", "deleted", "create", "delete"),
    [
        (3, 1, False, 2, 0),
        (3, 3, False, 0, 0),
        (1, 3, False, 0, 2),
        (0, 2, False, 0, 2),
        (3, 1, True, 0, 0),
        (2000, 0, False, BURST_MAX, 0),
        (0, 700, False, 0, BURST_MAX),
    ],
)
def test_how_many_pods_are_made_or_deleted(
    wanted: int, there: int, deleted: bool, create: int, delete: int
) -> None:
    pods = [pod(f"p{number}", uid=f"{number}") for number in range(there)]
    work = plan(replica_set(replicas=wanted, deleted=deleted), pods, {}, 0.0)
    assert (work.create, len(work.delete)) == (create, delete)


def test_a_new_pod_is_its_templates_and_its_sets() -> None:
    made = pod_of(replica_set(uid="set"))
    assert made.metadata.generateName == "web-"
    assert dict(made.metadata.labels) == WEB
    owner = made.metadata.ownerReferences[0]
    assert (owner.kind, owner.uid, owner.controller, owner.blockOwnerDeletion) == (
        "ReplicaSet", "set", True, True,
    )  # fmt: skip
    assert made.spec.containers[0].image == "pause"


def test_status_counts_pods() -> None:
    of = replica_set(uid="set", min_ready_seconds=60)
    pods = [
        pod("old", labels=WEB, ready=True, ready_since=0),
        pod("young", labels=WEB, ready=True, ready_since=990),
        pod("unready", labels={"app": "web", "more": "x"}),
        pod("unlabelled", labels={}),
        pod("ended", labels=WEB, phase="Succeeded"),
        pod("ending", labels=WEB, deleted=True),
    ]
    status = replicas_status(of, pods, "", NOW)
    assert (status.replicas, status.fullyLabeledReplicas) == (4, 3)
    assert (status.readyReplicas, status.availableReplicas) == (2, 1)
    assert not status.conditions
    assert not status.HasField("terminatingReplicas")
    pods.append(pod("ended while ending", labels=WEB, deleted=True, phase="Succeeded"))
    assert replicas_status(of, pods, "", NOW, terminating=True).terminatingReplicas == 1


def test_a_failure_is_told_as_long_as_it_lasts() -> None:
    of = replica_set(uid="set", replicas=1)
    status = replicas_status(of, [], "no", NOW)
    failure = get_condition(status.conditions, "ReplicaFailure")
    assert failure is not None
    assert (failure.reason, failure.message, failure.lastTransitionTime) == ("FailedCreate", "no", NOW)
    of.status.CopyFrom(status)
    assert not replicas_status(of, [], "", NOW).conditions
    too_many = replicas_status(of, [pod("a"), pod("b")], "no", NOW)
    assert [c.message for c in too_many.conditions] == ["no"]


@pytest.mark.parametrize(
    ("of", "seconds", "available"),
    [
        (pod(), 0, False),
        (pod(ready=True, ready_since=999), 0, True),
        (pod(ready=True, ready_since=990), 10, True),
        (pod(ready=True, ready_since=991), 10, False),
    ],
)
def test_available_is_ready_for_a_while(of: core.Pod, seconds: int, available: bool) -> None:
    assert is_available(of, seconds, NOW.seconds) is available


def test_expectations_hold_until_the_watch_has_shown_them() -> None:
    expected = Expectations()
    assert expected.satisfied(KEY, 0.0)
    expected.expect(KEY, 0.0, created="a")
    expected.expect(KEY, 0.0, deleted="b")
    assert not expected.satisfied(KEY, 1.0)
    expected.created(KEY, "a")
    assert not expected.satisfied(KEY, 1.0)
    expected.deleted(KEY, "b")
    assert expected.satisfied(KEY, 1.0)
    expected.expect(KEY, 0.0, created="lost")
    assert not expected.satisfied(KEY, EXPECTATION_SECONDS_MAX)
    assert expected.satisfied(KEY, EXPECTATION_SECONDS_MAX + 1)
    expected.forget(KEY)
    assert expected.satisfied(KEY, 0.0)


# --- budgets ---


def _pods(count: int, *, ready: int, owner: str = "set") -> list[core.Pod]:
    owners = [owned_by(owner)] if owner else []
    return [
        pod(f"{owner}{n}", uid=f"{owner}{n}", labels=WEB, owners=owners, ready=n < ready)
        for n in range(count)
    ]


def _scales(pods: Sequence[core.Pod], replicas: int | None) -> dict[str, Scale | None]:
    return {p.metadata.uid: Scale(p.metadata.ownerReferences[0].uid, replicas, "jobs.batch") for p in pods
            if p.metadata.ownerReferences}  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "replicas", "expected", "desired"),
    [
        ({"minAvailable": 2}, 5, 3, 2),  # an integer compares with the pods that there are
        ({"minAvailable": "50%"}, 5, 5, 3),  # rounded up
        ({"minAvailable": "100%"}, 5, 5, 5),
        ({"maxUnavailable": 1}, 5, 5, 4),
        ({"maxUnavailable": "30%"}, 5, 5, 3),  # 1.5 rounded up to 2
        ({"maxUnavailable": 9}, 5, 5, 0),
        ({"maxUnavailable": "0%"}, 5, 5, 5),
        ({}, 5, 0, 0),
    ],
)
def test_how_many_must_be_healthy(
    spec: Mapping[str, Any], replicas: int, expected: int, desired: int
) -> None:
    pods = _pods(3, ready=3)
    assert expected_and_desired(budget(**spec), pods, _scales(pods, replicas)) == (expected, desired)


def test_scales_of_several_controllers_add_up_and_bare_pods_do_not_count() -> None:
    pods = [*_pods(2, ready=2), *_pods(1, ready=1, owner="other"), *_pods(2, ready=2, owner="")]
    assert expected_and_desired(budget(maxUnavailable=1), pods, _scales(pods, 4)) == (8, 7)
    assert unmanaged(budget(maxUnavailable=1), pods) == ["0", "1"]
    assert unmanaged(budget(minAvailable="10%"), pods) == ["0", "1"]
    assert unmanaged(budget(minAvailable=1), pods) == []


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (None, 'found no controllers for pod "set0"'),
        (Scale("set", None, "jobs.batch"), "jobs.batch does not implement the scale subresource"),
    ],
)
def test_without_a_scale_nothing_can_be_said(scale: Scale | None, message: str) -> None:
    pods = _pods(1, ready=1)
    with pytest.raises(SyncError) as error:
        status_of(budget(maxUnavailable=1), pods, {"set0": scale}, NOW)
    assert str(error.value) == message
    old = {"disruptionsAllowed": 3, "currentHealthy": 4, "observedGeneration": 7}
    status = failed_status(budget(maxUnavailable=1, status=old), message, NOW)
    assert (status.disruptionsAllowed, status.currentHealthy, status.observedGeneration) == (0, 4, 7)
    row = get_condition(status.conditions, "DisruptionAllowed")
    assert row is not None
    assert (row.status, row.reason, row.message, row.observedGeneration) == (
        "False", "SyncFailed", message, 7,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("of", "pods", "allowed", "reason"),
    [
        (budget(minAvailable=2), _pods(3, ready=3), 1, "SufficientPods"),
        (budget(minAvailable=2), _pods(3, ready=2), 0, "InsufficientPods"),
        (budget(minAvailable=2), _pods(3, ready=0), 0, "InsufficientPods"),
        (budget(minAvailable=0), [], 0, "InsufficientPods"),
        (budget(maxUnavailable=1), _pods(3, ready=3), 1, "SufficientPods"),
    ],
)
def test_how_many_may_go(
    of: policy.PodDisruptionBudget, pods: list[core.Pod], allowed: int, reason: str
) -> None:
    status = status_of(of, pods, _scales(pods, 3), NOW)
    row = get_condition(status.conditions, "DisruptionAllowed")
    assert row is not None
    assert (status.disruptionsAllowed, row.reason) == (allowed, reason)
    assert row.status == ("True" if allowed else "False")
    assert (status.observedGeneration, row.observedGeneration) == (1, 1)


def test_the_condition_changes_its_time_only_with_its_status() -> None:
    of, pods = budget(minAvailable=2), _pods(3, ready=3)
    of.status.CopyFrom(status_of(of, pods, {}, to_time(float(EPOCH))))
    assert of.status.conditions[0].lastTransitionTime.seconds == EPOCH
    assert status_of(of, pods, {}, NOW) == of.status
    worse = status_of(of, pods[:2], {}, NOW)
    assert worse.conditions[0].lastTransitionTime == NOW
    assert len(worse.conditions) == 1


def test_an_allowed_eviction_counts_for_two_minutes_or_until_the_pod_is_gone() -> None:
    pods = _pods(3, ready=3)
    pods.append(pod("ending", uid="ending", labels=WEB, deleted=True, ready=True))
    marked = {"set0": stamp(950), "set1": stamp(800), "gone": stamp(999), "ending": stamp(999)}
    of = budget(minAvailable=1, status={"disruptedPods": marked})
    status = status_of(of, pods, {}, NOW)
    assert set(status.disruptedPods) == {"set0"}
    assert (status.expectedPods, status.currentHealthy, status.disruptionsAllowed) == (4, 2, 1)
    assert [p.metadata.name for p in not_deleted(of, pods, NOW.seconds)] == ["set1"]
    assert recheck_seconds(status, NOW.seconds) == 71.0
    assert recheck_seconds(policy.PodDisruptionBudgetStatus(), NOW.seconds) is None


def _target(since: int, **more: str) -> list[dict[str, str]]:
    return [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": stamp(since), **more}]


@pytest.mark.parametrize(
    ("of", "wait"),
    [
        (pod(), None),
        (pod(conditions=_target(900)), 20.0),
        (pod(conditions=_target(0)), 0.0),
        (pod(conditions=_target(0), deleted=True), None),
        (pod(conditions=_target(0), phase="Failed"), None),
        (pod(conditions=_target(0, reason="TerminationByKubelet")), None),
        (pod(conditions=[{"type": "DisruptionTarget", "status": "False"}]), None),
    ],
)
def test_when_a_disruption_is_void(of: core.Pod, wait: float | None) -> None:
    assert stale_disruption(of, NOW.seconds) == wait
