"""The scenarios of the study: their files, and what is composed and measured with the trials of seeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.scenario.result import Outcome
from nominee.lab.scenario.steps.objects.apply import Apply
from nominee.lab.study import composition
from nominee.lab.study.composition import PODS_STEP, SETS, Round, cluster_of, compose, plans, rounds
from nominee.lab.study.plans import Plan, PlannedPod
from nominee.lab.study.results import TrialResult
from nominee.lab.study.settings import CRASH_POINTS, NO_CRASH, QUICK, VICTIMS_TERMINATING, Scenario
from nominee.machinery.wire.values.scalars import Json
from nominee.scheduler.framework.resize_preemption import Fit, Tracking

_FILES = sorted((Path(composition.__file__).parent / "scenarios").glob("*.yaml"))
_PLAYED = [one for one in Scenario if one is not Scenario.THROUGHPUT]
_PLAN = Plan(
    seed=7,
    name="x",
    resizer=PlannedPod(name="x-resizer", priority=1000, cpu=500, desired_cpu=1500),
    candidates=(),
    fillers=(),
    changes_while_down=False,
    needed=1,
)
_MEASURED: dict[str, Json] = {
    "evicted": 2,
    "marked": 3,
    "resizeSeconds": 5.0,
    "deferredSeconds": 4.0,
    "nominations": [""],
    "nominatedSeconds": 0.0,
    "events": 7,
}


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.name)
def test_a_file_is_played_as_it_is(file: Path) -> None:
    for scenario in read_file(file):
        result = simulate(scenario, 1)
        assert result.outcome is Outcome.PASSED, result.reason
        for row in result.measurements:
            assert row.values["evicted"] >= 1
            assert row.values["resizeSeconds"] == pytest.approx(row.values["deferredSeconds"], abs=0.1)


@pytest.mark.parametrize("tracking", list(Tracking))
def test_the_scenarios_of_an_option_can_share_a_cluster(tracking: Tracking) -> None:
    order = rounds(tracking, _PLAYED, CRASH_POINTS)
    seeds = range(4)
    composed = [
        compose(one, number, plans(one, number, seeds, QUICK), tracking, SETS * len(seeds))
        for number, one in enumerate(order)
    ]
    assert len({scenario.name for scenario in composed}) == len(composed)
    assert {scenario.cluster.nodes for scenario in composed} == {12}
    assert all(scenario.cluster == cluster_of(tracking, 12) for scenario in composed)
    arguments = composed[0].cluster.component("scheduler").arguments
    assert arguments == (f"--resize-preemption-tracking={tracking.value}",)
    points = {one.point for one in order if one.scenario is Scenario.CRASH}
    without_status = {point for point in CRASH_POINTS if "status" not in point}
    expected = set(CRASH_POINTS) if tracking is Tracking.NOMINATED_NODE_NAME else without_status
    assert points == expected


def test_each_trial_has_a_node_that_the_rounds_before_it_did_not_use() -> None:
    one = Round(scenario=Scenario.GRACE)
    nodes: list[str] = []
    for number in range(SETS):
        composed = compose(one, number, plans(one, number, range(2), QUICK), Tracking.NONE, 6)
        (pods,) = (step.action for step in composed.steps if step.name == PODS_STEP)
        assert isinstance(pods, Apply)
        manifests = [each for each in pods.manifests if each["kind"] == "Pod"]
        found = {each["metadata"]["labels"]["trial"]: each["spec"]["nodeName"] for each in manifests}
        assert len(found) == 2
        nodes += found.values()
    assert sorted(nodes) == [f"node-{number}" for number in range(6)]


@pytest.mark.parametrize(
    ("point", "source", "kills"),
    [
        (NO_CRASH, "no-crash", 0),
        (VICTIMS_TERMINATING, "crash-victims-terminating", 1),
        ("scheduler.preempt.victim.after", "crash", 1),
    ],
)
def test_the_scheduler_is_killed_at_the_point(point: str, source: str, kills: int) -> None:
    one = Round(scenario=Scenario.CRASH, point=point)
    assert one.source == source
    composed = compose(one, 0, plans(one, 0, range(3), QUICK), Tracking.NONE, 9)
    assert [step.verb for step in composed.steps].count("kill") == kills
    armed = [step.action.describe() for step in composed.steps if step.verb == "failpoint"]
    assert len(armed) == (source == "crash")
    assert all(point in text for text in armed)


@pytest.mark.parametrize(("fit", "evicted"), [(Fit.SCHEDULER, 3), (Fit.KUBELET, 1)])
def test_four_pods_lose_three_with_the_schedulers_fit_and_one_with_the_kubelets(
    fit: Fit, evicted: int
) -> None:
    """KEP-5836, "Risk of Additional Preemption"."""
    one = Round(scenario=Scenario.FOUR_PODS, fit=fit)
    trials = plans(one, 0, range(2), QUICK)
    result = simulate(compose(one, 0, trials, Tracking.NONE, 2), 1)
    assert result.outcome is Outcome.PASSED, result.reason
    found = [
        TrialResult.of(plan, one.point, row.values, QUICK.fallback_seconds)
        for plan, row in zip(trials, result.measurements, strict=True)
    ]
    assert [(each.seed, each.evicted, each.redundant) for each in found] == [
        (0, evicted, evicted - 1),
        (1, evicted, evicted - 1),
    ]
    assert all(each.resize_seconds is not None for each in found)


def test_a_drawn_trial_evicts_as_many_pods_as_it_needs() -> None:
    one = Round(scenario=Scenario.CRASH, point=NO_CRASH)
    trials = plans(one, 0, range(3), QUICK)
    result = simulate(compose(one, 0, trials, Tracking.SPEC_NODE_NAME, 3), 1)
    assert result.outcome is Outcome.PASSED, result.reason
    for plan, row in zip(trials, result.measurements, strict=True):
        assert row.variant["TRIAL"] == plan.name
        assert 1 <= row.values["evicted"] <= plan.needed


def _result(**measured: Json) -> TrialResult:
    return TrialResult.of(_PLAN, "point", {**_MEASURED, **measured}, 3.0)


def test_the_result_of_a_trial_is_computed_from_what_is_measured() -> None:
    assert _result() == TrialResult(
        seed=7,
        point="point",
        needed=1,
        evicted=2,
        redundant=1,
        marked_only=1,
        resize_seconds=5.0,
        deferred_seconds=4.0,
        writes=3 + 2 + 7,
        nominations=("",),
        nominated_seconds=0.0,
        falls_back=True,
    )
    assert _result(evicted=0).redundant == 0
    assert _result(resizeSeconds=None).resize_seconds is None
    assert not _result(deferredSeconds=3.0).falls_back


@pytest.mark.parametrize(
    ("nominations", "writes"), [([], 0), ([""], 0), (["n"], 1), (["", "n"], 1), (["", "n", ""], 2)]
)
def test_each_change_of_the_nomination_is_a_write(nominations: list[Json], writes: int) -> None:
    without = replace(_result(), nominations=tuple(nominations), writes=_result().writes + writes)
    assert _result(nominations=nominations) == without
