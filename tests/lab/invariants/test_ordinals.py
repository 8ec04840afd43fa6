"""The controller of a StatefulSet creates the pods of its ordinals, in order."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.workloads.ordinals import Ordinals
from nominee.machinery.api.pb import apps, core
from tests.lab.invariants.histories import BEGIN, History, leader, lease, pod, result_of, violations_of

SETTINGS = ComponentSettings(lists_newest=frozenset({"controllers"}))


def stateful_set(
    replicas: int = 3, *, start: int = 0, generation: int = 1, observed: int = 0, policy: str = "OrderedReady"
) -> apps.StatefulSet:
    """Return a set; its controller has observed a generation."""
    found = apps.StatefulSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "db", "default", "uid-db"
    found.metadata.generation = generation
    found.spec.replicas, found.spec.ordinals.start = replicas, start
    found.spec.podManagementPolicy = policy
    found.status.observedGeneration = observed
    return found


def member(ordinal: int, state: str = "ready", *, uid: str = "") -> core.Pod:
    """Return a pod of the set: `ready`, `running`, `ending` or `failed`."""
    found = pod(
        f"db-{ordinal}",
        uid=uid,
        phase="Failed" if state == "failed" else "Running",
        conditions={"Ready": ""} if state in ("ready", "ending") else {},
        deletes_at=BEGIN + 1000 if state == "ending" else 0.0,
    )
    found.metadata.ownerReferences.add(
        apiVersion="apps/v1", kind="StatefulSet", name="db", uid="uid-db", controller=True
    )
    return found


def later(history: History, seconds: int = 100) -> History:
    return history.put(*[lease("n1")] * seconds)


@pytest.mark.parametrize(
    "history",
    [
        History().put(stateful_set(), member(0), member(1), member(2)),
        History().put(stateful_set(2, start=4), member(4), member(5)),
        History().put(stateful_set(policy="Parallel"), member(2, "running"), member(0, "running")),
        # One that was ready a moment ago may still be seen so; it may be gone by now.
        History().put(stateful_set(), member(0), member(0, "ending"), member(1)),
        History().put(stateful_set(), member(0)).delete(member(0)).put(member(1)),
        # The version that the controller reads may be any since the one that it observed.
        History().put(stateful_set(1), stateful_set(2, generation=2), member(0), member(1)),
        History().put(stateful_set(2), stateful_set(1, generation=2), member(0), member(1)),
        History().put(stateful_set(2), stateful_set(2, start=1, generation=2), member(1)),
        # Where the history begins, pods come before their set.
        History().state(member(0)).state(stateful_set()).put(member(1)),
        later(History().put(pod("db-2"), stateful_set())).put(member(2, uid="uid-db-2")),
    ],
)
def test_correct_creations(history: History) -> None:
    result = result_of(Ordinals, history, SETTINGS)
    assert result.violations == ()
    assert result.exceptions == {}


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        (History().put(stateful_set(), member(1)), "ordinal 1 while that of the ordinal 0 was not ready"),
        (
            History().put(stateful_set(), member(0, "running"), member(1)),
            "ordinal 1 while that of the ordinal 0 was not ready",
        ),
        (
            later(History().put(stateful_set(), member(0), member(1), member(0, "ending"))).put(member(2)),
            "ordinal 2 while that of the ordinal 0 was not ready",
        ),
        (
            later(History().put(stateful_set(), member(0), member(0, "failed"))).put(member(1)),
            "ordinal 1 while that of the ordinal 0 was not ready",
        ),
        (
            later(History().put(stateful_set(), member(0)).delete(member(0))).put(member(1)),
            "ordinal 1 while that of the ordinal 0 was not ready",
        ),
        (
            History().put(stateful_set(1, generation=2, observed=2), member(0), member(1)),
            "ordinal 1, which no version has",
        ),
        (History().put(stateful_set(2, start=1), member(0)), "ordinal 0, which no version has"),
        (
            History().put(stateful_set(policy="Parallel"), member(3)),
            "ordinal 3, which no version has",
        ),
    ],
)
def test_creations_out_of_order(history: History, problem: str) -> None:
    (violation,) = violations_of(Ordinals, history, SETTINGS)
    assert violation.message == f"StatefulSet default/db got a pod of the {problem}"


def test_exceptions() -> None:
    wrong = History().put(
        leader("a", "kube-controller-manager"),
        leader("b", "kube-controller-manager"),
        stateful_set(),
        member(1),
    )
    assert result_of(Ordinals, wrong, SETTINGS).exceptions == {"new-leader": 1}
    wrong = History().put(stateful_set(), member(1))
    assert result_of(Ordinals, wrong, ComponentSettings()).exceptions == {"stale-start": 1}
