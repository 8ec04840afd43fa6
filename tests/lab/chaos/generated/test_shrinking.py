"""Shrinking: what is left, how often it is tried, and how the steps of a case are numbered."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.generated.generating import Document
from nominee.lab.chaos.generated.shrinking import Found, renumber, shrink, smallest
from nominee.machinery.wire.values.scalars import Json


def manifest(kind: str, name: str) -> Json:
    """Return an object."""
    return {"kind": kind, "metadata": {"name": name}}


def apply(*manifests: Json) -> Json:
    """Return a step that creates objects."""
    return {"apply": list(manifests)}


def delete(kind: str, name: str) -> Json:
    """Return a step that deletes an object."""
    return {"delete": {"kind": kind, "name": name}}


Holds = Callable[[Document, Case], Case | None]


@pytest.mark.parametrize("needed", [{0}, {15}, {3, 12}, {7, 8}, {0, 5, 15}, set(range(16))])
def test_the_smallest_items(needed: Collection[int]) -> None:
    assert list(smallest(range(16), lambda kept: set(needed) <= set(kept))) == sorted(needed)


def document(*steps: object, **options: object) -> Document:
    """Return a scenario with these steps."""
    return {"spec": {"cluster": {"nodes": 1, "kubelets": 2}, "steps": [*steps], **options}}


STEPS = [
    apply(manifest("Pod", "a"), manifest("Pod", "b"), manifest("Pod", "c")),
    delete("Pod", "x"),
    delete("Pod", "b"),
    delete("Pod", "y"),
]


def needs(*texts: str, case: str = "") -> Holds:
    """Return a check that holds where the document and the case have these texts."""

    def check(changed: Document, tried: Case) -> Case | None:
        holds = all(text in str(changed) for text in texts) and case in str(tried)
        return (Case.parse(case) if case else tried) if holds else None

    return check


def test_steps_and_manifests_and_options_are_left_out() -> None:
    small = shrink(
        Found(document(*STEPS), Case()),
        needs("'metadata': {'name': 'b'}", "{'kind': 'Pod', 'name': 'b'}"),
        50,
    )
    assert small.document["spec"] == {
        "cluster": {"nodes": 1},
        "steps": [apply(manifest("Pod", "b")), delete("Pod", "b")],
    }


def test_a_case_that_has_become_smaller_stays_so() -> None:
    tried: list[str] = []
    check = needs("x", case="scheduler:pods=stale")

    def noted(changed: Document, case: Case) -> Case | None:
        tried.append(str(case))
        return check(changed, case)

    case = Case.parse("scheduler:pods=stale@2+kubelet-0:clock=ahead@3")
    small = shrink(Found(document(*STEPS), case), noted, 50)
    assert str(small.case) == "scheduler:pods=stale"
    assert "clock" not in tried[-1]


def test_the_number_of_runs_is_limited() -> None:
    count = 0

    def check(changed: Document, case: Case) -> Case | None:
        nonlocal count
        count += 1
        return case

    shrink(Found(document(*[delete("Pod", str(number)) for number in range(100)]), Case()), check, 5)
    assert count == 5


@pytest.mark.parametrize(
    ("kept", "case", "expected"),
    [
        ([(0, 0), (2, 0)], "scheduler:pods=stale@3", "scheduler:pods=stale@2"),
        ([(0, 0), (2, 0)], "scheduler:pods=stale@2", "scheduler:pods=stale@2"),
        ([(0, 0)], "scheduler:pods=stale@4", "scheduler:pods=stale"),
        ([(3, 0)], "scheduler:scheduler.bind.after=crash@3", "scheduler:scheduler.bind.after=crash@3"),
    ],
    ids=["the same step", "the next step", "the last step", "a hit"],
)
def test_numbers_of_steps(kept: list[tuple[int, int]], case: str, expected: str) -> None:
    perturbations = Case.parse(case).perturbations
    assert str(renumber(perturbations, Found(document(*STEPS), Case()), kept)) == expected


def test_a_step_with_a_variable_is_played_for_each_variant() -> None:
    steps = [delete("Pod", "a"), {"drain": {"node": "${NODE}"}}, delete("Pod", "b")]
    found = Found(document(*steps, variants=[{"NODE": "node-0"}, {"NODE": "node-1"}]), Case())
    case = Case.parse("scheduler:pods=stale@4").perturbations
    assert str(renumber(case, found, [(1, 0), (2, 0)])) == "scheduler:pods=stale@3"
