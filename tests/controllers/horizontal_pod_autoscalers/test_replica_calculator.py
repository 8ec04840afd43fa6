"""The replicas that a resource metric asks for.

Cases of kube-controller-manager 1.36, pkg/controller/podautoscaler/replica_calculator_test.go, and of
kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale ("Algorithm details").
"""

from __future__ import annotations

import pytest

from nominee.controllers.horizontal_pod_autoscalers.replica_calculator import (
    MetricError,
    Proposal,
    Settings,
    Target,
    Tolerances,
    propose,
    usages,
)
from nominee.machinery.api.pb import core
from tests.controllers.horizontal_pod_autoscalers.builders import NOW, pod, row, usage

TOLERANCES = Tolerances(0.1, 0.1)
HALF = Target("cpu", utilization=50)
EACH_80M = Target("cpu", average=80)


def proposal(
    target: Target, pods: list[core.Pod], used: list[int | None], tolerances: Tolerances
) -> Proposal:
    """Return the proposal for pods and their usage, None where it is not known."""
    metrics = {p.metadata.name: usage(u) for p, u in zip(pods, used, strict=True) if u is not None}
    return propose(target, len(pods), metrics, pods, tolerances, Settings(), NOW)


def three(**fields: object) -> list[core.Pod]:
    """Return two pods that are ready, and a third one with these fields."""
    return [pod("a"), pod("b"), pod("c", **fields)]  # type: ignore[arg-type]  # fields of a pod


@pytest.mark.parametrize(
    ("target", "pods", "used", "replicas"),
    [
        # ceil(current * usage / target)
        (HALF, three(), [100, 100, 100], 6),
        (HALF, three(), [30, 30, 30], 2),
        (HALF, three(), [70, 80, 90], 5),
        (EACH_80M, three(), [160, 160, 160], 6),
        (EACH_80M, three(), [20, 20, 20], 1),
        # within the tolerance of 0.1
        (HALF, three(), [54, 54, 54], 3),
        (HALF, three(), [46, 46, 46], 3),
        (EACH_80M, three(), [87, 87, 87], 3),
        # pods without metrics use nothing when scaling up, all of their request when scaling down
        (HALF, three(), [100, 100, None], 4),
        (HALF, three(), [20, 20, None], 3),
        (HALF, three(), [1, 1, None], 3),
        (Target("cpu", utilization=200), three(), [10, 10, None], 2),
        (EACH_80M, three(), [40, 40, None], 2),
        # pods that are not ready use nothing when scaling up, and do not count when scaling down
        (HALF, three(phase="Pending"), [100, 100, None], 4),
        (HALF, three(phase="Pending"), [10, 10, None], 1),
        (HALF, three(ready=False, started=-60), [100, 100, 100], 4),
        (HALF, three(ready=False, ready_since=-990), [100, 100, 100], 4),
        # became unready later than the initial readiness delay: its usage counts
        (HALF, three(ready=False, ready_since=-10), [100, 100, 100], 6),
        # ready, but measured before one window since then
        (HALF, three(started=-60, ready_since=-5), [100, 100, 100], 4),
        (HALF, three(started=-60, ready_since=-15), [100, 100, 100], 6),
        # memory counts from the start
        (Target("memory", average=50), three(ready=False, started=-60), [100, 100, 100], 6),
        # the correction never changes the direction
        (HALF, [pod("a"), pod("b", phase="Pending"), pod("c", phase="Pending")], [80, None, None], 3),
        # pods that end do not count
        (HALF, three(deleted=True), [100, 100, 100], 4),
        (HALF, three(phase="Failed"), [100, 100, 100], 4),
    ],
)
def test_replicas(target: Target, pods: list[core.Pod], used: list[int | None], replicas: int) -> None:
    if target.resource == "memory":
        for each in pods:
            each.spec.containers[0].resources.requests["memory"].string = "1"
    assert proposal(target, pods, used, TOLERANCES).replicas == replicas


def test_tolerances_of_both_directions() -> None:
    assert proposal(HALF, three(), [52, 52, 52], Tolerances(0.0, 0.0)).replicas == 4
    assert proposal(HALF, three(), [20, 20, 20], Tolerances(0.7, 0.0)).replicas == 3
    assert proposal(HALF, three(), [90, 90, 90], Tolerances(0.0, 0.9)).replicas == 3


def test_the_average_and_the_utilization_are_those_of_the_pods_that_count() -> None:
    assert proposal(HALF, three(), [10, 30, None], TOLERANCES) == Proposal(3, 20, 20)
    assert proposal(EACH_80M, three(), [10, 30, 20], TOLERANCES) == Proposal(1, 20)


@pytest.mark.parametrize(
    ("pods", "used", "text"),
    [
        ([], [], "no pods returned by selector while calculating replica count"),
        (three(request=""), [1, 1, 1], "missing request for cpu in container main of Pod c"),
        (
            [pod("a", phase="Pending", request="")],
            [1],
            "did not receive metrics for targeted pods (pods might be unready)",
        ),
    ],
)
def test_errors(pods: list[core.Pod], used: list[int | None], text: str) -> None:
    with pytest.raises(MetricError) as error:
        proposal(HALF, pods, used, TOLERANCES)
    assert str(error.value) == text


def test_requests_of_sidecars_and_of_the_pod() -> None:
    side = pod("a")
    side.spec.initContainers.add(name="side", restartPolicy="Always").resources.requests[
        "cpu"
    ].string = "100m"
    side.spec.initContainers.add(name="setup")
    assert proposal(HALF, [side], [100], TOLERANCES) == Proposal(1, 100, 50)
    side.spec.resources.requests["cpu"].string = "400m"
    assert proposal(HALF, [side], [100], TOLERANCES) == Proposal(1, 100, 25)
    del side.spec.resources.requests["cpu"]
    side.spec.resources.requests["memory"].string = "1Gi"
    assert proposal(HALF, [side], [100], TOLERANCES) == Proposal(1, 100, 50)
    side.spec.overhead["cpu"].string = "200m"
    assert proposal(HALF, [side], [100], TOLERANCES) == Proposal(1, 100, 25)
    memory = Target("memory", utilization=50)
    assert proposal(memory, [side], [2**29 * 1000], TOLERANCES) == Proposal(1, 2**29 * 1000, 50)
    for container in (*side.spec.containers, *side.spec.initContainers):
        container.resources.requests.clear()
    side.spec.overhead.clear()
    with pytest.raises(MetricError, match="missing pod-level request for cpu in Pod a"):
        proposal(HALF, [side], [100], TOLERANCES)


def test_the_usage_of_pods_and_containers() -> None:
    rows = [row("a", "1500u"), row("b", "2")]
    rows[0].containers.add(name="side").usage["cpu"].string = "1m"
    assert {name: each.value for name, each in usages(rows, HALF).items()} == {"a": 3, "b": 2000}
    found = usages(rows, Target("cpu", "main", utilization=50))
    assert {name: each.value for name, each in found.items()} == {"a": 2, "b": 2000}
    assert (found["a"].window, found["a"].time) == (10.0, NOW)
    assert usages([row("a", "1")], Target("memory", average=1)) == {}
    with pytest.raises(MetricError, match="no metrics returned from resource metrics API"):
        usages([], HALF)
    with pytest.raises(MetricError, match="container side not present in metrics for pod default/b"):
        usages(rows, Target("cpu", "side", utilization=50))
