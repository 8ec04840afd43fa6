"""Stabilization, rates and bounds.

Source: kube-controller-manager 1.36, pkg/controller/podautoscaler/horizontal_test.go; the page
kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale ("Configurable scaling behavior").
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.controllers.horizontal_pod_autoscalers.normalization import History, Sample, normalize
from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import Settings
from nominee.machinery.defaults.watched import autoscaler as complete
from nominee.machinery.features import gates
from tests.controllers.horizontal_pod_autoscalers.builders import NOW, autoscaler

GATES = gates.Gates("apiserver", gates.DEFAULT)


def behaving(name: str, rules: dict[str, Any] | None, *, most: int = 100, **others: Any) -> Any:
    """Return the spec of an autoscaler with a behavior, completed by the API server."""
    hpa = autoscaler(most=most, behavior={name: rules or {}, **others})
    complete(hpa, GATES)
    return hpa.spec


def rules(*policies: tuple[str, int, int], window: int | None = None, select: str = "Max") -> dict[str, Any]:
    """Return scaling rules; a policy is a type, a value and a period."""
    found: dict[str, Any] = {"selectPolicy": select}
    found["policies"] = [{"type": t, "value": v, "periodSeconds": p} for t, v, p in policies]
    if window is not None:
        found["stabilizationWindowSeconds"] = window
    return found


def of(spec: Any, current: int, desired: int, history: History | None = None) -> tuple[int, str, str]:
    """Return the replicas and the reasons of AbleToScale and ScalingLimited."""
    found = normalize(spec, current, desired, history or History(), Settings(), NOW)
    return found.replicas, found.able.reason, found.limit.reason


FREE = rules(("Percent", 1000, 15), window=0)


UP, DOWN, MIN, OFF = "scaleUp", "scaleDown", "Min", "Disabled"


@pytest.mark.parametrize(
    ("spec", "current", "desired", "expected"),
    [
        # without behavior: at most twice as many, or four
        (autoscaler(most=100).spec, 1, 9, (4, "ScaleUpLimit")),
        (autoscaler(most=100).spec, 5, 50, (10, "ScaleUpLimit")),
        (autoscaler(most=8).spec, 5, 50, (8, "TooManyReplicas")),
        (autoscaler(least=2).spec, 5, 1, (2, "TooFewReplicas")),
        (autoscaler().spec, 5, 6, (6, "DesiredWithinRange")),
        # the default behavior: twice as many, or four more
        (behaving(UP, None), 2, 50, (6, "ScaleUpLimit")),
        (behaving(UP, None), 5, 50, (10, "ScaleUpLimit")),
        (behaving(UP, rules(("Pods", 4, 60), ("Percent", 10, 60))), 80, 99, (88, "ScaleUpLimit")),
        (behaving(UP, rules(("Pods", 4, 60), ("Percent", 10, 60), select=MIN)), 80, 99, (84, "ScaleUpLimit")),
        (behaving(UP, rules(("Percent", 10, 60))), 1, 9, (2, "ScaleUpLimit")),
        (behaving(UP, rules(("Pods", 4, 60), select=OFF)), 5, 9, (5, "ScaleUpLimit")),
        (behaving(DOWN, rules(("Percent", 10, 60), window=0)), 80, 1, (72, "ScaleDownLimit")),
        (
            behaving(DOWN, rules(("Pods", 5, 60), ("Percent", 10, 60), window=0, select=MIN)),
            80,
            1,
            (75, "ScaleDownLimit"),
        ),
        (behaving(DOWN, rules(("Pods", 5, 60), window=0, select=OFF)), 8, 1, (8, "ScaleDownLimit")),
        (behaving(DOWN, FREE), 8, 0, (1, "TooFewReplicas")),
        (behaving(UP, FREE, most=9), 8, 20, (9, "TooManyReplicas")),
    ],
)
def test_rates_and_bounds(spec: Any, current: int, desired: int, expected: tuple[int, str]) -> None:
    replicas, able, limit = of(spec, current, desired)
    assert (replicas, limit) == expected
    assert able == "ReadyForNewScale"


def samples(*pairs: tuple[int, float]) -> History:
    """Return a history of recommendations, each of some seconds ago."""
    return History([Sample(replicas, NOW - age) for replicas, age in pairs])


def test_a_recent_higher_recommendation_holds_up_scaling_down() -> None:
    spec = autoscaler().spec
    assert of(spec, 8, 2, samples((8, 100), (5, 20))) == (8, "ScaleDownStabilized", "DesiredWithinRange")
    assert of(spec, 8, 2, samples((8, 301), (5, 20)))[:2] == (5, "ScaleDownStabilized")
    assert of(spec, 8, 2, samples((8, 301)))[:2] == (2, "ReadyForNewScale")
    own = behaving(DOWN, {"stabilizationWindowSeconds": 60})
    assert of(own, 8, 2, samples((8, 100), (5, 20)))[:2] == (5, "ScaleDownStabilized")


def test_a_recent_lower_recommendation_holds_up_scaling_up() -> None:
    spec = behaving(UP, {**FREE, "stabilizationWindowSeconds": 60})
    assert of(spec, 2, 9, samples((4, 30), (9, 10)))[:2] == (4, "ScaleUpStabilized")
    assert of(spec, 2, 9, samples((4, 61)))[:2] == (9, "ReadyForNewScale")
    assert of(spec, 2, 9, samples((1, 10)))[:2] == (2, "ScaleUpStabilized")


def test_earlier_changes_count_in_their_period() -> None:
    spec = behaving(UP, rules(("Pods", 4, 60)), scaleDown=rules(("Pods", 4, 60), window=0))
    history = History(ups=[Sample(3, NOW - 30), Sample(9, NOW - 61)])
    assert of(spec, 10, 50, history)[0] == 11
    history = History(ups=[Sample(3, NOW - 30)], downs=[Sample(2, NOW - 10)])
    assert of(spec, 10, 50, history)[0] == 13
    assert of(spec, 10, 1, History(downs=[Sample(4, NOW - 30)]))[0] == 10


def test_the_history_is_bounded() -> None:
    history, spec = History(), autoscaler().spec
    for second in range(10_000):
        normalize(spec, 3, 3, history, Settings(), NOW + second)
    assert len(history.recommendations) <= 302


@given(
    recommendations=st.lists(st.integers(1, 30), min_size=1, max_size=40),
    least=st.integers(1, 5),
    most=st.integers(5, 20),
    window=st.integers(0, 120),
    has_behavior=st.booleans(),
)
def test_a_steady_recommendation_is_reached_within_bounds(
    recommendations: list[int], least: int, most: int, window: int, has_behavior: bool
) -> None:
    """Whatever came before, the replicas are within the bounds, and end where the recommendation stays."""
    hpa = autoscaler(least=least, most=most)
    if has_behavior:
        hpa.spec.behavior.scaleDown.stabilizationWindowSeconds = window
        complete(hpa, GATES)
    history, current = History(), least
    last = recommendations[-1]
    for number, desired in enumerate([*recommendations, *[last] * 60]):
        now = NOW + 15 * number
        found = normalize(hpa.spec, current, desired, history, Settings(), now)
        assert least <= found.replicas <= most
        history.note_scale(current, found.replicas, now)
        current = found.replicas
    assert current == min(max(last, least), most)
