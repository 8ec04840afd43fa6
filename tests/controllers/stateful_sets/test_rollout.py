"""Stateful sets: which pods are created, changed and deleted, and in which order.

States are written per ordinal: `ready v1` is a ready pod of revision v1, `-` no pod.
Source of the rules: kube-controller-manager 1.36 and 1.37, stateful_set_control.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.stateful_sets.rollout import CREATIONS_MAX
from nominee.machinery.api.pb import apps, core
from tests.controllers.stateful_sets.builders import member, planned, stateful_set, words

PARALLEL = {"policy": "Parallel"}


def pods_of(of: apps.StatefulSet, states: str) -> list[core.Pod]:
    pods = []
    for ordinal, text in enumerate(states.split(", ")):
        state, *image = text.split()
        if state != "-":
            pods.append(member(of, ordinal, state, image=image[0] if image else "v1"))
    return pods


@pytest.mark.parametrize(
    ("options", "states", "phases"),
    [
        # OrderedReady creates one at a time, and the next when the one before is ready.
        ({}, "-", [["create 0 v1"]]),
        ({}, "pending, -, -", []),
        ({}, "running, -, -", []),
        ({}, "ready, -, -", [["create 1 v1"]]),
        ({}, "ready, -, ready", [["create 1 v1"]]),
        ({}, "running, -, ready", []),
        ({}, "ready-ending, -, -", []),
        ({}, "ready, ready, ready", []),
        ({"replicas": 0}, "-", []),
        # Parallel creates all.
        (PARALLEL, "-", [["create 0 v1", "create 1 v1", "create 2 v1"]]),
        (PARALLEL, "pending, -, ready-ending", [["create 1 v1"]]),
        # Pods that ended are deleted; the next reconciliation creates them again.
        ({}, "ready, failed, -", [["delete 1"]]),
        ({}, "succeeded, ready, ready", [["delete 0"]]),
        ({}, "ready, failed-ending, -", []),
        (PARALLEL, "failed, -, succeeded", [["delete 0", "create 1 v1", "delete 2"]]),
        # Scaling down: from the highest ordinal, one at a time, all others available.
        ({"replicas": 1}, "ready, ready, ready", [["delete 2"]]),
        ({"replicas": 1}, "ready, ready, ready-ending", []),
        ({"replicas": 1}, "running, ready, ready", []),
        ({"replicas": 1}, "ready, running, ready", [["delete 2"]]),
        ({"replicas": 1}, "ready, ready, running", [["delete 2"]]),
        ({"replicas": 1}, "ready, running, running", []),
        ({"replicas": 0}, "running", [["delete 0"]]),
        ({"replicas": 1} | PARALLEL, "ready, running, ready", [["delete 2", "delete 1"]]),
        ({"replicas": 2} | PARALLEL, "-, ready, ready-ending, ready", [["create 0 v1"], ["delete 3"]]),
        # Nothing for a set that terminates.
        ({"deleted": True}, "ready, -, -", []),
        # spec.ordinals.start: ordinals below it are too many.
        ({"start": 1, "replicas": 2}, "ready, ready, ready", [["delete 0"]]),
        ({"start": 1, "replicas": 2}, "-, ready", [["create 2 v1"]]),
    ],
)
def test_pods_are_created_replaced_and_scaled(
    options: dict[str, Any], states: str, phases: list[list[str]]
) -> None:
    of = stateful_set(**options)
    assert words(planned(of, pods_of(of, states))) == phases


@pytest.mark.parametrize(
    ("options", "states", "phases"),
    [
        ({}, "ready, ready, ready", [["delete 2"]]),
        ({}, "ready, ready, -", [["create 2 v2"]]),
        ({}, "ready, ready, running v2", []),  # a broken update waits
        ({}, "ready, ready, ready v2", [["delete 1"]]),
        ({}, "ready, ready, failed v2", [["delete 2"]]),
        ({}, "ready, running, ready v2", []),
        ({}, "ready v2, ready v2, ready v2", []),
        # What is missing is made before the update goes on, below the partition from the old revision.
        ({"partition": 2}, "ready, ready, ready", [["delete 2"]]),
        ({"partition": 2}, "ready, ready, ready v2", []),
        ({"partition": 2}, "ready, -, ready v2", [["create 1 v1"]]),
        ({"partition": 1}, "ready, -, ready v2", [["create 1 v2"]]),
        ({"partition": 9}, "ready, ready, ready", []),
        ({"partition": 1, "start": 1, "replicas": 2}, "-, -, ready", [["create 1 v1"]]),
        ({"partition": 1, "start": 1, "replicas": 2}, "-, ready, -", [["create 2 v2"]]),
        # OnDelete creates from the new revision and deletes nothing.
        ({"strategy": "OnDelete"}, "ready, ready, ready", []),
        ({"strategy": "OnDelete"}, "ready, -, ready", [["create 1 v2"]]),
        # Scaling comes first.
        ({"replicas": 2}, "ready, ready, ready", [["delete 2"]]),
        ({"replicas": 2}, "ready, ready, ready-ending", []),
    ],
)
@pytest.mark.parametrize("counts_unavailable", [False, True])
def test_an_update_one_pod_at_a_time(
    options: dict[str, Any], states: str, phases: list[list[str]], counts_unavailable: bool
) -> None:
    of = stateful_set(image="v2", **options)
    found = planned(of, pods_of(of, states), update="v2", counts_unavailable=counts_unavailable)
    assert words(found) == phases


@pytest.mark.parametrize(
    ("options", "states", "old", "new"),
    [
        # Without MaxUnavailableStatefulSet (before 1.37) maxUnavailable is ignored.
        ({"max_unavailable": 2}, "ready, ready, ready", ["delete 2"], ["delete 2", "delete 1"]),
        ({"max_unavailable": "70%"}, "ready, ready, ready", ["delete 2"], ["delete 2", "delete 1"]),
        ({"max_unavailable": "10%"}, "ready, ready, ready", ["delete 2"], ["delete 2"]),
        (
            {"max_unavailable": 3, "partition": 1},
            "ready, ready, ready",
            ["delete 2"],
            ["delete 2", "delete 1"],
        ),
        # Parallel: a pod that is unavailable already is deleted whatever the budget; available ones are not.
        (PARALLEL, "running, running, running", ["delete 2"], ["delete 2", "delete 1", "delete 0"]),
        (PARALLEL, "running, ready, ready", ["delete 2"], ["delete 0"]),
        (PARALLEL | {"max_unavailable": 2}, "running, ready, ready", ["delete 2"], ["delete 0", "delete 2"]),
        (PARALLEL | {"max_unavailable": 2}, "ready, ready, ready-ending", [], ["delete 1"]),
        (PARALLEL, "ready, ready, running v2", [], []),
        (PARALLEL, "ready, running, running v2", [], ["delete 1"]),
        (PARALLEL | {"partition": 1}, "running, ready, ready", ["delete 2"], []),
    ],
)
def test_an_update_with_max_unavailable(
    options: dict[str, Any], states: str, old: list[str], new: list[str]
) -> None:
    """Source: kubernetes/kubernetes#137904 (off in 1.36), #137666 and #139466 (on in 1.37)."""
    of = stateful_set(image="v2", **options)
    for counts, phase in ((False, old), (True, new)):
        found = planned(of, pods_of(of, states), update="v2", counts_unavailable=counts)
        assert words(found) == ([phase] if phase else [])


def test_an_ended_pod_of_the_old_revision_is_deleted_once() -> None:
    of = stateful_set(image="v2", policy="Parallel")
    for counts in (False, True):
        found = planned(of, pods_of(of, "ready, ready, failed"), update="v2", counts_unavailable=counts)
        assert words(found) == [["delete 2"]]


def test_a_roll_back_replaces_the_broken_pod_only_in_parallel() -> None:
    """Source: the documentation's "Forced rollback": OrderedReady waits for the broken pod."""
    of = stateful_set(image="v1")
    states = "ready v1, ready v1, running v2"
    assert words(planned(of, pods_of(of, states), current="v1", update="v1")) == []
    parallel = stateful_set(image="v1", policy="Parallel")
    assert words(planned(parallel, pods_of(parallel, states), update="v1")) == [["delete 2"]]


@pytest.mark.parametrize(
    ("ready_since", "phases"),
    [(1000, []), (995, []), (990, [["create 1 v1"]]), (0, [["create 1 v1"]])],
)
def test_the_next_pod_waits_until_the_one_before_is_available(
    ready_since: int, phases: list[list[str]]
) -> None:
    of = stateful_set(minReadySeconds=10)
    assert words(planned(of, [member(of, 0, ready_since=ready_since)])) == phases


def test_an_update_waits_for_availability() -> None:
    of = stateful_set(image="v2", minReadySeconds=10)
    pods = [
        member(of, 0),
        member(of, 1),
        member(of, 2, image="v2", ready_since=995),
    ]
    assert words(planned(of, pods, update="v2")) == []
    pods[2] = member(of, 2, image="v2", ready_since=990)
    assert words(planned(of, pods, update="v2")) == [["delete 1"]]


def test_a_pod_without_its_label_is_corrected() -> None:
    of = stateful_set(replicas=1)
    pod = member(of, 0)
    pod.metadata.labels.pop("statefulset.kubernetes.io/pod-name")
    found = planned(of, [pod])
    assert words(found) == [["update 0"]]
    assert found.phases[0][0].pod == member(of, 0)


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_two_billion_replicas_are_begun_in_bounded_time(policy: str) -> None:
    of = stateful_set(replicas=2**31 - 1, policy=policy)
    (phase,) = words(planned(of, [member(of, 0), member(of, 2)]))
    assert len(phase) == (1 if policy == "OrderedReady" else CREATIONS_MAX)
    assert phase[0] == "create 1 v1"
