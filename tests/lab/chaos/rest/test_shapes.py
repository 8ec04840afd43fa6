"""A disturbed run must end with objects of the shapes that the undisturbed one had."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.rest.shapes import other_shapes, shapes_of
from nominee.lab.chaos.rest.state import Expectations
from tests.lab.chaos.rest.clusters import Change, Manifests, changed, correct, pod, put, state

UNDISTURBED = shapes_of(state(correct()))


def _found(change: Change) -> list[str]:
    found = state(changed(change), expectations=Expectations(shapes=UNDISTURBED))
    return list(map(str, other_shapes(found)))


def _first_pod(manifests: Manifests) -> str:
    return next(name for name, each in manifests.items() if each["kind"] == "Pod")


def renames(manifests: Manifests) -> None:
    """Give a pod another name, uid and address."""
    found = manifests[_first_pod(manifests)]
    found["metadata"].update(name="renamed", uid="other", resourceVersion="99")
    found["status"]["podIP"] = "10.9.9.9"


def adds_a_pod(manifests: Manifests) -> None:
    """Leave a pod behind in another namespace."""
    manifests["left"] = pod("left", namespace="other", labels={})


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (put("node/spec/taints", [{"key": "k", "effect": "NoSchedule"}]), "taint k:NoSchedule"),
        (put("node/status/conditions", [{"type": "Odd", "status": "True"}]), "Odd=True"),
        (put("node/metadata/annotations", {"left": "behind"}), "annotation left"),
        (put("node/metadata/finalizers", ["x/y"]), "finalizer x/y"),
        (adds_a_pod, "a pod in other"),
    ],
)
def test_what_only_the_disturbed_run_has_is_found(change: Change, difference: str) -> None:
    found = _found(change)
    (more,) = [each for each in found if difference in each]
    assert "is there once, and 0 times after the undisturbed run" in more


def test_an_object_that_is_missing_is_found() -> None:
    found = _found(lambda manifests: manifests.pop(_first_pod(manifests)))
    assert any("a pod in default" in each and "after the undisturbed run" in each for each in found)


def test_names_and_numbers_are_no_part_of_a_shape() -> None:
    assert _found(renames) == []


def test_nothing_is_compared_with_the_undisturbed_run_itself() -> None:
    assert list(other_shapes(state(changed(adds_a_pod)))) == []


WORKER = "Queue.run.<locals>.worker"
MEMORY = {
    "tasks": {"Informer.run": 3, WORKER: 1},
    "calls": {"Watch": 3},
    "entries": {"Queue._keys": 2},
}


@pytest.mark.parametrize(
    ("part", "what", "count", "found"),
    [
        ("tasks", "Informer.run", 4, "a task Informer.run of scheduler is there 4 times"),
        ("tasks", "Informer.run", 2, "a task Informer.run of scheduler is there 2 times"),
        (
            "tasks",
            WORKER,
            2,
            f"a task {WORKER} of scheduler is there 2 times",
        ),
        ("tasks", WORKER, 0, ""),
        ("calls", "Watch", 2, "an open call Watch of scheduler is there 2 times"),
        ("entries", "Queue._keys", 3, "an entry of Queue._keys in scheduler is there 3 times"),
        ("entries", "Queue._keys", 1, ""),
    ],
)
def test_what_processes_hold_is_compared(part: str, what: str, count: int, found: str) -> None:
    place = ("scheduler", "/debug/memory")
    undisturbed = shapes_of(state(correct(), debug={place: MEMORY}))
    changed_memory = {**MEMORY, part: {**MEMORY[part], what: count}}
    expectations = Expectations(shapes=undisturbed)
    findings = other_shapes(state(correct(), debug={place: changed_memory}, expectations=expectations))
    assert [str(each).partition(",")[0] for each in findings] == ([found] if found else [])
