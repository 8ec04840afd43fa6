"""What always holds of a preemption, on random clusters; and the order of the criteria."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Candidate, Code
from nominee.scheduler.framework.scheduling.algorithm import find_feasible
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.default_preemption import DefaultPreemption
from nominee.scheduler.preemption.budgets import read_budgets, violations
from nominee.scheduler.preemption.evaluator import num_candidates
from nominee.scheduler.preemption.selection import best_candidates
from nominee.scheduler.preemption.victim_groups import Victim
from tests.scheduler.builders import desk, pod
from tests.scheduler.clusters import clusters

NOW = 1000.0


@settings(max_examples=80, deadline=None)
@given(cluster=clusters())
def test_victims_have_lower_priority_and_are_needed_and_enough(
    cluster: tuple[list[core.Node], list[core.Pod], core.Pod],
) -> None:
    nodes, pods, pending = cluster
    pending.spec.priority = 10
    pending.spec.ClearField("nodeName")
    on = desk(without=())
    for node in nodes:
        on.cache.put_node(node)
    for each in pods:
        on.cache.add_pod(PodInfo(each))
    framework, state, preemptor = on.framework, CycleState(), PodInfo(pending)
    on.cache.update_snapshot(framework.snapshot)
    before = framework.snapshot.requested.copy()
    try:
        find_feasible(framework, state, preemptor, framework.snapshot)
    except FitError as error:
        statuses = error.diagnosis.statuses
    else:
        return
    plugin = framework.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    decision = plugin.decide(state, preemptor, statuses)
    for candidate in decision.candidates:
        info = framework.snapshot.get(candidate.node)
        assert info is not None
        assert statuses.get(candidate.node).code is Code.Unschedulable
        assert all(victim.priority < 10 for victim in candidate.victims)
        freed = info.clone()
        for victim in candidate.victims:
            freed.remove_pod(victim.uid)
        assert framework.run_filter_plugins(state, preemptor, freed) is None
        for victim in candidate.victims:
            with_one_back = freed.clone()
            with_one_back.add_pod(victim)
            assert framework.run_filter_plugins(state, preemptor, with_one_back) is not None
    assert np.array_equal(framework.snapshot.requested, before)  # a dry run leaves no trace


def started(name: str, priority: int, at: int | None = None) -> PodInfo:
    info = pod(name, priority=priority)
    if at is not None:
        info.pod.status.startTime.seconds = at
    return info


def candidate(node: str, *victims: PodInfo, violations: int = 0) -> Candidate:
    return Candidate(node, victims, violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        # fewer violations, although the victim matters more
        (candidate("a", started("x", 9)), candidate("b", started("y", 1), violations=1)),
        # a lower highest priority, although there are more victims
        (candidate("a", started("x", 1), started("z", 1)), candidate("b", started("y", 2))),
        # a smaller sum of priorities
        (candidate("a", started("x", 5), started("z", 1)), candidate("b", started("y", 5), started("w", 2))),
        # fewer victims also when priorities are negative
        (candidate("a", started("x", -5)), candidate("b", started("y", -5), started("w", -9))),
        # a later start of the most important victims
        (candidate("a", started("x", 5, 20)), candidate("b", started("y", 5, 10))),
        # no start time counts as now
        (candidate("a", started("x", 5)), candidate("b", started("y", 5, 999))),
    ],
)
def test_criteria(better: Candidate, worse: Candidate) -> None:
    both = [worse, better]
    random.Random(1).shuffle(both)
    assert [c.node for c in best_candidates(both, NOW)[0]] == ["a"]


def test_equal_candidates_are_all_reported() -> None:
    both = [candidate("a", started("x", 5, 10)), candidate("b", started("y", 5, 10))]
    assert best_candidates(both, NOW) == (both, "one of 2 equal candidates")


@pytest.mark.parametrize(
    ("nodes", "percentage", "absolute", "wanted"),
    [(50, 10, 100, 50), (500, 10, 100, 100), (5000, 10, 100, 500), (5000, 0, 7, 7)],
)
def test_how_many_candidates(nodes: int, percentage: int, absolute: int, wanted: int) -> None:
    assert num_candidates(nodes, percentage, absolute) == wanted


def test_budgets_are_used_up_in_order() -> None:
    def budget(name: str, allowed: int, **spec: Any) -> Any:
        return codec.from_json(
            kinds.POD_DISRUPTION_BUDGET.message,
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": spec,
                "status": {"disruptionsAllowed": allowed, "disruptedPods": {"gone": "2026-01-01T00:00:00Z"}},
            },
        )

    def labelled(name: str, **labels: str) -> PodInfo:
        made = core.Pod()
        made.CopyFrom(pod(name).pod)
        made.metadata.labels.update(labels)
        return PodInfo(made)

    budgets = read_budgets(
        [
            budget("web", 1, selector={"matchLabels": {"app": "web"}}),
            budget("all", 0, selector={}),
            budget("none", 0),
            budget("wrong", 0, selector={"matchExpressions": [{"key": "app", "operator": "Near"}]}),
        ]
    )
    pods = [labelled(n, app="web") for n in ("gone", "a", "b")] + [labelled("bare")]

    def violating(*victims: tuple[PodInfo, ...], of: Any = budgets, first_only: bool = False) -> list[int]:
        return violations([Victim(each, 0) for each in victims], of, first_only=first_only)

    assert violating(*[(p,) for p in pods]) == [0, 0, 1, 0]
    gone, a, b, bare = pods
    assert violating((b, a), (gone, bare)) == [1, 0]  # a group is one victim
    two = read_budgets(
        [
            budget("front", 0, selector={"matchLabels": {"tier": "front"}}),
            budget("web", 1, selector={"matchLabels": {"app": "web"}}),
        ]
    )
    both = labelled("both", app="web", tier="front")
    assert violating((both,), (a,), of=two) == [1, 1]
    assert violating((both,), (a,), of=two, first_only=True) == [1, 0]  # of 1.37: "web" is not used up
