"""The controller of a ReplicaSet creates its pods once."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.workloads.replicas import Replicas, largest_batch
from nominee.machinery.api.pb import apps, core
from tests.lab.invariants.histories import BEGIN, History, leader, pod, result_of, violations_of

SETTINGS = ComponentSettings(lists_newest=frozenset({"controllers"}))


def replica_set(replicas: int, *, generation: int = 1, observed: int = 0) -> apps.ReplicaSet:
    """Return a set; its controller has observed a generation."""
    found = apps.ReplicaSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "web", "default", "uid-web"
    found.metadata.generation = generation
    found.spec.replicas = replicas
    found.status.observedGeneration = observed
    return found


def owned(name: str, *, phase: str = "", deletes_at: float = 0.0, set_uid: str = "uid-web") -> core.Pod:
    """Return a pod of the set."""
    found = pod(name, phase=phase, deletes_at=deletes_at)
    found.metadata.ownerReferences.add(
        apiVersion="apps/v1", kind="ReplicaSet", name="web", uid=set_uid, controller=True
    )
    return found


def pods(names: str) -> list[core.Pod]:
    """Return pods of the set with these names."""
    return [owned(name) for name in names.split()]


SCALED_DOWN = [replica_set(3), replica_set(2, generation=2)]


def test_pods_of_a_replication_controller_count_as_well() -> None:
    controller = core.ReplicationController()
    controller.metadata.CopyFrom(replica_set(2).metadata)
    controller.spec.replicas = 2
    with_three = History().put(controller, *pods("a b c d"))
    (violation,) = violations_of(Replicas, with_three, SETTINGS)
    assert "ReplicationController default/web of 2 replicas got pod number 4" in violation.message


@pytest.mark.parametrize(
    "history",
    [
        History().put(replica_set(3), *pods("a b c")),
        History().put(replica_set(2), *pods("a b"), owned("a", deletes_at=BEGIN + 1000), owned("c")),
        History().put(replica_set(2), *pods("a b"), owned("a", phase="Failed"), owned("c")),
        History().put(replica_set(2), *pods("a b")).delete(owned("a")).put(owned("c")),
        History().put(*SCALED_DOWN, *pods("a b c")),
        History().put(replica_set(2), *pods("a b"), pod("c"), owned("c"), pod("d"), owned("d")),
        History().put(replica_set(2), *pods("a b"), pod("a"), pod("b"), *pods("c d")),
        History().put(*pods("a b")),
        History().put(replica_set(1), owned("a"), owned("b", set_uid="uid-other")),
    ],
    ids=[
        "all",
        "terminating",
        "failed",
        "gone",
        "scaled down",
        "adopted",
        "released",
        "of no set",
        "of another set",
    ],
)
def test_correct_creations(history: History) -> None:
    result = result_of(Replicas, history, SETTINGS)
    assert result.violations == ()
    assert result.exceptions == {}


@pytest.mark.parametrize(
    ("history", "count", "replicas"),
    [
        (History().put(replica_set(2), *pods("a b c d")), 4, 2),
        (History().put(replica_set(3), *pods("a b c d e f")), 6, 3),
        (
            History().put(*SCALED_DOWN, replica_set(2, generation=2, observed=2), *pods("a b c d")),
            4,
            2,
        ),
    ],
    ids=["twice", "three twice", "scaled down and observed"],
)
def test_pods_that_were_created_twice(history: History, count: int, replicas: int) -> None:
    (violation,) = violations_of(Replicas, history, SETTINGS)
    assert violation.message == (
        f"ReplicaSet default/web of {replicas} replicas got pod number {count}: its controller created pods "
        "twice"
    )
    assert violation.objects[0] == "ReplicaSet default/web"
    assert f"Pod default/{'abcdef'[count - 1]}" in violation.objects


def test_a_batch_whose_answers_were_lost_may_be_repeated() -> None:
    result = result_of(Replicas, History().put(replica_set(3), *pods("a b c d e")))
    assert result.violations == ()
    assert result.exceptions == {"answers-lost": 2}


def failing(found: apps.ReplicaSet) -> apps.ReplicaSet:
    """Return the set when a creation of its controller has failed."""
    found.status.conditions.add(type="ReplicaFailure", status="True", reason="FailedCreate")
    return found


def test_creations_that_failed_again_and_again_may_all_have_been_done() -> None:
    repeated = History().put(replica_set(1), owned("a"), failing(replica_set(1)), *pods("b c d"))
    result = result_of(Replicas, repeated, SETTINGS)
    assert (result.violations, result.exceptions) == ((), {"answers-lost": 3})
    (violation,) = violations_of(Replicas, repeated.put(replica_set(1), *pods("e f")), SETTINGS)
    assert "got pod number 6" in violation.message


def test_a_write_of_the_former_leader_is_an_exception() -> None:
    result = result_of(
        Replicas,
        History().put(
            leader("m1", "kube-controller-manager"),
            replica_set(2),
            *pods("a b"),
            leader("m2", "kube-controller-manager"),
            *pods("c d"),
        ),
    )
    assert result.violations == ()
    assert result.exceptions == {"new-leader": 2}


def test_batches() -> None:
    assert [largest_batch(pods) for pods in (0, 1, 2, 3, 4, 6, 7, 15)] == [0, 1, 1, 2, 2, 3, 4, 8]


def test_a_restarted_controller_may_begin_with_an_older_state() -> None:
    result = result_of(Replicas, History().put(replica_set(2), *pods("a b c d")), ComponentSettings())
    assert result.violations == ()
    assert result.exceptions == {"answers-lost": 1, "stale-start": 1}
