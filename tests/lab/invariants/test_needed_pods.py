"""The controllers delete no pod that its ReplicaSet needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.workloads.needed_pods import NeededPods
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import apps, core
from tests.lab.invariants.histories import BEGIN, History, node, pod

NAME = NeededPods.about.name


def replica_set(
    replicas: int, *, generation: int = 1, observed: int = 0, uid: str = "uid-web", deletes_at: float = 0.0
) -> apps.ReplicaSet:
    """Return a set; its controller has observed a generation."""
    found = apps.ReplicaSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "web", "default", uid
    found.metadata.generation = generation
    if deletes_at:
        found.metadata.deletionTimestamp.seconds = int(deletes_at)
    found.spec.replicas = replicas
    found.status.observedGeneration = observed
    return found


def owned(name: str, *, phase: str = "", evicted: bool = False, deletes_at: float = 0.0) -> core.Pod:
    """Return a pod of the set."""
    conditions = {"DisruptionTarget": "DeletionByTaintManager"} if evicted else {}
    found = pod(name, phase=phase, conditions=conditions, deletes_at=deletes_at)
    found.metadata.ownerReferences.add(
        apiVersion="apps/v1", kind="ReplicaSet", name="web", uid="uid-web", controller=True
    )
    return found


def terminating(name: str) -> core.Pod:
    """Return a pod of the set that was deleted."""
    return owned(name, deletes_at=BEGIN + 1000)


ANSWER = Answer(
    client="controllers",
    method=Method.DELETE,
    outcome=Outcome.DONE,
    kind=kinds.POD,
    namespace="default",
    name="a",
    begin=0,
    end=0,
)


def check(history: History, **changes: object) -> tuple[int, tuple[Violation, ...]]:
    """Return the number of checked deletions and the violations; the last write was the answered one."""
    running = Check(ComponentSettings(observes_answers=True), [NAME])
    for revision in history.revisions:
        running.observe(revision)
    end = history.next_revision - 1
    running.observe_answer(replace(ANSWER, begin=end - 1, end=end, **changes))  # type: ignore[arg-type]
    (result,) = running.finish(Evidence(now=history.now))
    return result.checked, result.violations


TWO = [owned("a"), owned("b")]


@pytest.mark.parametrize(
    "history",
    [
        History().put(replica_set(2), *TWO, terminating("a")),
        History().put(replica_set(2), *TWO).delete(owned("a")),
        History().put(replica_set(3), *TWO, terminating("a")),
        History().put(replica_set(1), replica_set(2, generation=2, observed=2), *TWO, terminating("a")),
        History().put(
            replica_set(2), *TWO, owned("c"), terminating("c"), *[node("n1")] * 70, terminating("a")
        ),
    ],
    ids=["terminating", "gone", "too few", "scaled up and observed", "another one long ago"],
)
def test_a_pod_that_is_needed(history: History) -> None:
    checked, (violation,) = check(history)
    assert checked == 1
    assert (
        "the controllers deleted a pod of ReplicaSet default/web, which exists and had" in violation.message
    )
    assert violation.objects == ("ReplicaSet default/web", "Pod default/a")


@pytest.mark.parametrize(
    "history",
    [
        History().put(replica_set(1), *TWO, terminating("a")),
        History().put(replica_set(1), replica_set(2, generation=2), *TWO, terminating("a")),
        History().put(replica_set(2), *TWO, owned("c"), terminating("c"), terminating("a")),
        History().put(
            replica_set(2), *TWO, owned("c"), terminating("c"), *[node("n1")] * 60, terminating("a")
        ),
        History().put(replica_set(2), *TWO, owned("a", evicted=True), terminating("a")),
        History().put(replica_set(2), *TWO, owned("a", phase="Failed")).delete(owned("a", phase="Failed")),
        History().put(replica_set(2), *TWO).delete(replica_set(2)).put(terminating("a")),
        History().put(replica_set(2), *TWO, replica_set(2, deletes_at=BEGIN + 1000), terminating("a")),
        History().put(replica_set(2), *TWO, replica_set(2, uid="uid-other"), terminating("a")),
        History().put(replica_set(2), pod("a"), pod("a", deletes_at=BEGIN + 1000)),
    ],
    ids=[
        "scaled down",
        "may have read fewer replicas",
        "may have seen more pods",
        "may wait for a list",
        "disrupted",
        "failed",
        "without an owner",
        "with its owner",
        "of a former owner",
        "of no set",
    ],
)
def test_a_pod_that_is_not_needed(history: History) -> None:
    assert check(history)[1] == ()


def test_deletions_of_others_and_in_an_ending_namespace_are_left_out() -> None:
    history = History().put(replica_set(2), *TWO, terminating("a"))
    assert check(history, client="user") == (0, ())
    assert check(history, method=Method.UPDATE) == (0, ())
    assert check(history, name="b") == (0, ())
    ending = core.Namespace()
    ending.metadata.name = "default"
    ending.metadata.deletionTimestamp.seconds = int(BEGIN)
    assert check(History().put(ending, replica_set(2), *TWO, terminating("a"))) == (0, ())
