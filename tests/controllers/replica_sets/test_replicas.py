"""Replica sets: which pods they own, create and delete, their status, and expectations."""

from __future__ import annotations

import pytest

from nominee.controllers.claiming import claim
from nominee.controllers.owned_pods.deletion_order import to_delete
from nominee.controllers.owned_pods.expectations import EXPECTATION_SECONDS_MAX, Expectations
from nominee.controllers.owned_pods.readiness import is_active, is_available
from nominee.controllers.owned_pods.template import pod_of
from nominee.controllers.replica_sets.replicas import BURST_MAX, plan, recheck_seconds
from nominee.controllers.replica_sets.replicas import status_of as replicas_status
from nominee.machinery.api.objects import ObjectKey, get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import to_time
from tests.controllers.builders import EPOCH, owned_by, pod, replica_set

NOW = to_time(float(EPOCH + 1000))
WEB = {"app": "web"}
MINE = [owned_by("set")]
KEY = ObjectKey("default", "web")


def test_the_pods_that_a_set_owns_adopts_and_releases() -> None:
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
    found = claim(of, of.spec.selector, pods, is_active)
    assert [p.metadata.name for p in found.owned] == ["own"]
    assert [p.metadata.name for p in found.adopt] == ["orphan"]
    assert [p.metadata.name for p in found.release] == ["strayed"]
    ending = claim(replica_set(uid="set", deleted=True), of.spec.selector, pods, is_active)
    assert (ending.adopt, ending.release) == ([], [])


def with_sidecar(of: core.Pod, *, restarts: int) -> core.Pod:
    of.spec.initContainers.add(name="sidecar", restartPolicy="Always")
    of.spec.initContainers.add(name="init")
    of.status.initContainerStatuses.add(name="sidecar", restartCount=restarts)
    of.status.initContainerStatuses.add(name="init", restartCount=9 - restarts)
    return of


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
        (pod(uid="b", node="n2"), pod(uid="a", node="n1")),
        (pod(uid="b", node="n1", ready=True, ready_since=990), pod(uid="a", node="n1", ready=True)),
        (pod(uid="b", restarts=2), pod(uid="a", restarts=1)),
        (pod(uid="b", created=990), pod(uid="a", created=0)),
        # Nearly as old counts as as old: the uid decides.
        (pod(uid="a", created=1), pod(uid="b", created=30)),
        # Nearly as long ready: the uid decides before the restarts. They count for pods as long ready.
        (
            pod(uid="a", node="n1", ready=True, ready_since=1),
            pod(uid="b", node="n1", ready=True, ready_since=30, restarts=2),
        ),
        (
            pod(uid="b", node="n1", ready=True, ready_since=30, restarts=2),
            pod(uid="a", node="n1", ready=True, ready_since=30),
        ),
        # 540 s and 560 s are on two sides of a power of two of nanoseconds.
        (pod(uid="b", created=460), pod(uid="a", created=440)),
        (with_sidecar(pod(uid="b"), restarts=1), with_sidecar(pod(uid="a"), restarts=0)),
        (with_sidecar(pod(uid="b", restarts=1), restarts=0), with_sidecar(pod(uid="a"), restarts=5)),
    ],
)
def test_which_of_two_pods_is_deleted_first(first: core.Pod, second: core.Pod) -> None:
    siblings = {"n2": 3, "n1": 1}
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
def test_how_many_pods_are_created_or_deleted(
    wanted: int, there: int, deleted: bool, create: int, delete: int
) -> None:
    pods = [pod(f"p{number}", uid=f"{number}") for number in range(there)]
    work = plan(replica_set(replicas=wanted, deleted=deleted), pods, {}, 0.0)
    assert (work.create, len(work.delete)) == (create, delete)


def test_a_new_pod_has_the_template_and_its_owner() -> None:
    of = replica_set(uid="set")
    made = pod_of(of, of.spec.template)
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


def test_a_failure_is_reported_as_long_as_it_lasts() -> None:
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
    expected.note_creation(KEY, "a")
    assert not expected.satisfied(KEY, 1.0)
    expected.note_deletion(KEY, "b")
    assert expected.satisfied(KEY, 1.0)
    assert expected.outstanding() == []
    expected.expect(KEY, 0.0, created="lost")
    assert not expected.satisfied(KEY, EXPECTATION_SECONDS_MAX)
    assert expected.satisfied(KEY, EXPECTATION_SECONDS_MAX + 1)
    assert expected.outstanding() == [KEY]
    expected.forget(KEY)
    assert expected.satisfied(KEY, 0.0)


def test_a_ready_pod_is_looked_at_again_when_it_becomes_available() -> None:
    of = replica_set(uid="set", replicas=1)
    of.spec.minReadySeconds = 30
    older, newer = pod(ready=True, ready_since=990), pod(ready=True, ready_since=995)
    now = float(NOW.seconds)
    assert recheck_seconds(of, [newer, older, pod()], now, now + 0.5) == 19.5
    assert recheck_seconds(of, [newer, older], now + 20, now + 20) == 5
    assert recheck_seconds(of, [newer, older], now + 25, now + 25) is None
    # It has become available since the status counted it.
    assert recheck_seconds(of, [newer, older], now + 24, now + 25.5) == 0
    assert recheck_seconds(of, [pod()], now, now) is None
    of.spec.minReadySeconds = 0
    assert recheck_seconds(of, [older], now, now) is None


def test_a_ready_pod_without_a_time_is_looked_at_again_after_the_whole_time() -> None:
    of = replica_set(uid="set", replicas=1, min_ready_seconds=30)
    timeless = pod(conditions=[{"type": "Ready", "status": "True"}])
    assert recheck_seconds(of, [timeless], NOW.seconds, NOW.seconds) == 30
