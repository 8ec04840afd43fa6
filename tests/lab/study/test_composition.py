"""The scenarios of the study: their files, and what is composed of them and measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.play.simulate import simulate
from nominee.lab.scenario.result import Outcome
from nominee.lab.study import composition
from nominee.lab.study.composition import cluster_of, compose, drawn, plan_of
from nominee.lab.study.plans import Plan, PlannedPod
from nominee.lab.study.results import Row, row_of
from nominee.lab.study.settings import (
    AFTER_POLICY,
    CRASH_POINTS,
    LIVE_READ,
    NEW_KUBELET,
    OLD_KUBELET,
    QUICK,
    SHIPPED,
    VICTIMS_TERMINATING,
    Scenario,
    Setup,
    setups,
)
from nominee.machinery.wire.values.scalars import Json
from nominee.scheduler.framework.resize_preemption import Fit, Tracking

_FILES = sorted((Path(composition.__file__).parent / "scenarios").glob("*.yaml"))
_ALL = [setup for one in Scenario for setup in setups(one, tuple(Tracking))]
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


def played(setup: Setup, seed: int) -> Row:
    result = simulate(compose(setup, seed), seed)
    assert result.outcome is Outcome.PASSED, result.reason
    measured = {name: value for each in result.measurements for name, value in each.values.items()}
    return row_of(plan_of(setup, seed), seed, drawn(setup, seed), measured)


@pytest.mark.slow
@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.name)
def test_a_file_is_played_as_it_is(file: Path) -> None:
    for scenario in read_file(file):
        result = simulate(scenario, 1)
        assert result.outcome is Outcome.PASSED, result.reason
        assert any("evicted" in row.values for row in result.measurements)


@pytest.mark.parametrize("setup", _ALL, ids=str)
def test_each_setup_has_one_cluster_for_all_seeds(setup: Setup) -> None:
    for seed in range(3):
        composed = compose(setup, seed)
        assert composed.cluster == cluster_of(setup)
        assert composed.cluster.nodes == 1


def test_options_that_are_compared_have_the_same_trials() -> None:
    for one in Tracking:
        setup = Setup(scenario=Scenario.CRASH, tracking=one)
        base = Setup(scenario=Scenario.CRASH)
        assert [plan_of(setup, seed) for seed in range(5)] == [plan_of(base, seed) for seed in range(5)]
        assert [drawn(setup, seed) for seed in range(5)] == [drawn(base, seed) for seed in range(5)]
        assert (
            f"--resize-preemption-tracking={one.value}" in cluster_of(setup).component("scheduler").arguments
        )


def test_every_point_of_a_crash_is_drawn() -> None:
    setup = Setup(scenario=Scenario.CRASH)
    points = {drawn(setup, seed)["point"]: seed for seed in range(40)}
    assert set(points) == set(CRASH_POINTS)
    for point, seed in points.items():
        composed = compose(setup, seed)
        assert [step.verb for step in composed.steps].count("kill") == 1
        armed = [step.action.describe() for step in composed.steps if step.verb == "failpoint"]
        assert len(armed) == (point != VICTIMS_TERMINATING)
        assert all(point in text for text in armed)


@pytest.mark.parametrize(("fit", "evicted"), [(Fit.SCHEDULER, 3), (Fit.KUBELET, 1)])
def test_four_pods_lose_three_with_the_schedulers_fit_and_one_with_the_kubelets(
    fit: Fit, evicted: int
) -> None:
    """KEP-5836, "Risk of Additional Preemption"."""
    row = played(Setup(scenario=Scenario.FOUR_PODS, fit=fit), 1)
    assert (row["evicted"], row["redundant"]) == (evicted, evicted - 1)


@pytest.mark.slow
def test_the_kubelet_preempts_although_the_scheduler_has() -> None:
    """KEP-5836, "Kubelet Preemption": another pod ends while the scheduler's victims terminate."""
    setup = Setup(scenario=Scenario.KUBELET, variant=AFTER_POLICY)
    rows = [played(setup, seed) for seed in range(6)]
    assert all(row["evicted"] for row in rows)
    assert any(row["byKubelet"] for row in rows)


def test_in_the_races_both_pods_are_resized() -> None:
    for variant in ("", SHIPPED):
        row = played(Setup(scenario=Scenario.RACES, variant=variant), 0)
        assert row["evicted"] == 2
        assert None not in (row["resizeSeconds"], row["otherSeconds"])


@pytest.mark.parametrize(("variant", "evicted"), [(OLD_KUBELET, 1), (LIVE_READ, 0), (NEW_KUBELET, 0)])
def test_a_live_read_closes_what_a_held_watch_of_nodes_opens(variant: str, evicted: int) -> None:
    setup = Setup(scenario=Scenario.POLICY_LAG, variant=variant)
    composed = compose(setup, 0)
    names = [step.name for step in composed.steps]
    held = next(
        step
        for scenario in read_file(Path("scenarios/kep-5836-policy-lag.yaml"))
        for step in scenario.steps
        if step.verb == "fault"
    )
    at = names.index("an operator disables preemption for resizes")
    steps = (*composed.steps[:at], held, *composed.steps[at:])
    result = simulate(replace(composed, steps=steps), 3)
    assert result.outcome is Outcome.PASSED, result.reason
    assert [row.values["evicted"] for row in result.measurements] == [evicted]


def test_what_depends_on_time_is_not_simulated() -> None:
    assert setups(Scenario.THROUGHPUT, tuple(Tracking)) == []


def test_comparisons_have_fewer_seeds() -> None:
    counts = {setup: QUICK.seeds_for(setup) for setup in _ALL}
    assert counts[Setup(scenario=Scenario.CRASH)] == QUICK.seeds
    assert counts[Setup(scenario=Scenario.CRASH, tracking=Tracking.MEMORY)] == QUICK.seeds_of_others
    assert min(counts.values()) >= 1


def _row(**measured: Json) -> Row:
    return row_of(_PLAN, 7, {"point": "x"}, {**_MEASURED, **measured})


def test_the_row_of_a_trial_is_computed_from_what_is_measured() -> None:
    assert _row() == {
        "seed": 7,
        "point": "x",
        "evicted": 2,
        "redundant": 1,
        "markedOnly": 1,
        "writes": 3 + 2 + 7,
        "fallsBack": 1,
        "resizeSeconds": 5.0,
    }
    assert _row(evicted=0)["redundant"] == 0
    assert _row(byKubelet=2)["redundant"] == 3
    assert _row(resizeSeconds=None)["resizeSeconds"] is None
    assert _row(deferredSeconds=3.0)["fallsBack"] == 0


@pytest.mark.parametrize(
    ("nominations", "writes"), [([], 0), ([""], 0), (["n"], 1), (["", "n"], 1), (["", "n", ""], 2)]
)
def test_each_change_of_the_nomination_is_a_write(nominations: list[Json], writes: int) -> None:
    assert _row(nominations=nominations)["writes"] == _row()["writes"] + writes
