"""The kubelet's choice of victims against kubelet_preemption.jsonl."""

from __future__ import annotations

import pytest

from kubelet.allocation.preemption import (
    Candidate,
    NoVictimsError,
    Shortage,
    choose_victims,
    is_critical_priority,
)
from tests.kubelet.golden import Case, cases

CASES = cases("kubelet_preemption.jsonl")


def candidate(row: Case) -> Candidate:
    priority = row.get("priority")
    return Candidate(
        key=row["name"],
        qos=row["qos"],
        priority=priority,
        critical=is_critical_priority(priority),
        requests={"cpu": row["cpuMillis"], "memory": row["memoryBytes"]},
    )


def play(case: Case) -> Case:
    """The handler around the choice: only critical pods preempt, and only for room."""
    preemptor = candidate(case["admitPod"])
    descriptions = [f"Insufficient {failure['resource']}" for failure in case["failures"]]
    other = case.get("otherFailure")
    if not preemptor.critical:
        return {"victims": [], "remainingReasons": descriptions + ([other] if other else [])}
    if other:
        return {"victims": [], "remainingReasons": [other]}
    shortages = [Shortage(failure["resource"], failure["insufficient"]) for failure in case["failures"]]
    try:
        victims = choose_victims(preemptor, [candidate(row) for row in case["pods"]], shortages)
    except NoVictimsError as error:
        return {
            "victims": [],
            "error": f"preemption: error finding a set of pods to preempt: {error}",
        }
    return {"victims": [victim.key for victim in victims]}


def test_there_are_cases() -> None:
    assert len(CASES) > 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_victims(case: Case) -> None:
    assert play(case) == case["expect"]
