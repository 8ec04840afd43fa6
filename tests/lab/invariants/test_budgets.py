"""Evictions spend the allowance of a budget once each."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.workloads.budgets import Budgets
from nominee.machinery.api.pb import core, policy
from tests.lab.invariants.histories import BEGIN, History, node, pod, result_of, violations_of

SETTINGS = ComponentSettings(lists_newest=frozenset({"controllers"}))


def budget(allowed: int, **evicted: float) -> policy.PodDisruptionBudget:
    """Return a budget of the pods with app=a; `evicted` are the counted ones, with seconds after BEGIN."""
    found = policy.PodDisruptionBudget()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "b", "default", "uid-b"
    found.spec.selector.matchLabels["app"] = "a"
    found.status.disruptionsAllowed = allowed
    for name, seconds in evicted.items():
        found.status.disruptedPods[name].seconds = int(BEGIN + seconds)
    return found


def ready(name: str, *, is_evicted: bool = False, deletes_at: float = 0.0, app: str = "a") -> core.Pod:
    """Return a pod that is ready, and maybe evicted or terminating."""
    conditions = {"Ready": ""} | ({"DisruptionTarget": "EvictionByEvictionAPI"} if is_evicted else {})
    found = pod(name, node="n1", phase="Running", conditions=conditions, deletes_at=deletes_at)
    found.metadata.labels["app"] = app
    return found


def begin(*pods: str, allowed: int = 1) -> History:
    """Return a history with ready pods and a budget, all older than `NEW_SECONDS`."""
    history = History().put(budget(allowed), *(ready(name) for name in pods))
    return history.put(*[node("n1")] * 12)


GONE_AT = BEGIN + 1000.0


@pytest.mark.parametrize(
    "history",
    [
        begin("p").put(
            budget(0, p=15),
            ready("p", is_evicted=True),
            ready("p", is_evicted=True, deletes_at=GONE_AT),
            budget(0),
        ),
        begin("p", "q", allowed=2).put(budget(1, p=15), budget(0, p=15, q=16)),
        begin("p").put(budget(0, p=15), budget(0, p=15), budget(1, p=15)),
        begin("p").put(budget(0, p=15)).delete(ready("p")).put(budget(0)),
        begin("p").put(budget(0, p=15), ready("p", app="other"), budget(1)),
        begin("p").put(budget(0, p=15), *[node("n1")] * 130, budget(1)),
        begin("p").put(ready("p", deletes_at=GONE_AT)),
        begin().put(
            pod("p", phase="Pending"),
            pod("p", phase="Pending", conditions={"DisruptionTarget": "EvictionByEvictionAPI"}),
        ),
        begin("p").delete(budget(1)).put(ready("p", is_evicted=True)),
    ],
    ids=[
        "one eviction",
        "two evictions",
        "recomputed",
        "gone",
        "of another app",
        "not deleted in time",
        "a deletion",
        "a pending pod",
        "no budget",
    ],
)
def test_correct_evictions(history: History) -> None:
    result = result_of(Budgets, history, SETTINGS)
    assert result.violations == ()
    assert result.exceptions == {}


@pytest.mark.parametrize(
    ("history", "message", "objects"),
    [
        (
            begin("p", "q", allowed=2).put(budget(1, p=15), budget(1, p=15, q=16)),
            "the eviction of q was counted, and disruptionsAllowed went from 1 to 1",
            ("PodDisruptionBudget default/b",),
        ),
        (
            begin("p", "q").put(budget(0, p=15), budget(-1, p=15, q=16)),
            "the eviction of q was counted, and disruptionsAllowed went from 0 to -1",
            ("PodDisruptionBudget default/b",),
        ),
        (
            begin("p").put(budget(0, p=15), budget(1)),
            "the budget forgot the eviction of Pod default/p, which does not terminate yet",
            ("Pod default/p", "PodDisruptionBudget default/b"),
        ),
        (
            begin("p").put(ready("p", is_evicted=True)),
            "the ready pod was evicted, and PodDisruptionBudget default/b has not counted it",
            ("PodDisruptionBudget default/b", "Pod default/p"),
        ),
    ],
    ids=["not taken", "below zero", "forgotten", "not counted"],
)
def test_an_allowance_that_is_spent_twice(history: History, message: str, objects: tuple[str, ...]) -> None:
    (violation,) = violations_of(Budgets, history, SETTINGS)
    assert violation.message == message
    assert set(violation.objects) == set(objects)
    assert history.next_revision - 1 in violation.revisions


@pytest.mark.parametrize(
    "history",
    [
        begin().put(ready("p"), budget(0, p=15), budget(1)),
        History().put(ready("p"), budget(1), ready("p", is_evicted=True)),
    ],
    ids=["a new pod", "a new budget"],
)
def test_new_objects_may_not_be_in_a_cache(history: History) -> None:
    result = result_of(Budgets, history, SETTINGS)
    assert result.violations == ()
    assert result.exceptions == {"new": 1}


def test_an_eviction_may_meet_the_next_pod_of_the_name() -> None:
    counted = begin("p").put(budget(0, p=15)).delete(ready("p")).put(budget(0))
    again = ready("p", app="a")
    again.metadata.uid = "uid-again"
    evicted = ready("p", is_evicted=True)
    evicted.metadata.uid = "uid-again"
    result = result_of(Budgets, counted.put(again, evicted), SETTINGS)
    assert (result.violations, result.exceptions) == ((), {"former-object": 1})
    counted = begin("p").put(budget(0, p=15)).delete(ready("p")).put(budget(0))
    assert len(violations_of(Budgets, counted.put(again, *[node("n1")] * 20, evicted), SETTINGS)) == 1


def test_a_restarted_controller_may_begin_with_an_older_state() -> None:
    result = result_of(Budgets, begin("p").put(budget(0, p=15), budget(1)), ComponentSettings())
    assert result.violations == ()
    assert result.exceptions == {"stale-start": 1}


def test_a_status_of_an_older_generation_allows_no_eviction() -> None:
    before, after = budget(1), budget(0, p=15)
    for each in (before, after):
        each.metadata.generation, each.status.observedGeneration = 2, 1
    history = History().put(before, ready("p"), *[node("n1")] * 12, after)
    (violation,) = violations_of(Budgets, history, SETTINGS)
    assert violation.message == (
        "the eviction of p was allowed by a status of generation 1, and the budget has generation 2"
    )


@pytest.mark.parametrize(
    "history",
    [
        begin().put(ready("p"), budget(0, p=15), budget(1), ready("p", is_evicted=True)),
        begin().put(ready("p", app="other"), *[node("n1")] * 20, ready("p"), budget(0, p=35), budget(1)),
    ],
    ids=["a new pod", "new labels"],
)
def test_a_cache_may_not_have_the_pod_of_an_eviction(history: History) -> None:
    assert violations_of(Budgets, history, SETTINGS) == []


def test_labels_that_no_budget_selects_are_not_new() -> None:
    labelled = ready("p")
    labelled.metadata.labels["zone"] = "a"
    history = begin("p").put(labelled, budget(0, p=15), budget(1))
    assert len(violations_of(Budgets, history, SETTINGS)) == 1


def test_an_eviction_of_a_new_pod_is_counted() -> None:
    history = begin().put(ready("p"), ready("p", is_evicted=True))
    assert len(violations_of(Budgets, history, SETTINGS)) == 1
