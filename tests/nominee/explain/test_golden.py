"""`nominee explain` says what the real kube-scheduler 1.36.2 said, in the same shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from machinery.runtime.clock import FakeClock
from nominee.explain.cases import Case
from scheduler.explanation.verdict import explain
from scheduler.plugins.registry import IN_TREE
from tests.scheduler.golden import NOW_SECONDS, read_lines
from tests.scheduler.test_golden_verdicts import needed_plugins

CASES = [case for case in read_lines("scheduler.jsonl") if not needed_plugins(case) - set(IN_TREE)]


def sorted_reasons(expect: Mapping[str, Any]) -> dict[str, Any]:
    rejected = {
        node: {**rejection, "reasons": sorted(rejection["reasons"])}
        for node, rejection in expect["rejected"].items()
    }
    return {**expect, "rejected": rejected}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_verdict(case: Mapping[str, Any]) -> None:
    cluster = Case(case["name"], case["objects"], case["pod"], case["featureGates"])
    world = cluster.world(None, {}, FakeClock(NOW_SECONDS))
    verdict = explain(world.framework, world.snapshot, world.pods[case["pod"]])
    assert verdict.expect() == sorted_reasons(case["expect"])
    wanted, extra = case["extra"], verdict.extra()
    for key in (
        "message",
        "preemptionMessage",
        "nominatedNodeTies",
        "victimsByImportance",
        "nominatedFastPath",
    ):
        if key in wanted:
            assert extra[key] == wanted[key], key
    if "keepsNominatedNode" in wanted:
        assert verdict.preemption is not None
        assert (verdict.preemption.nomination is None) == wanted["keepsNominatedNode"]
