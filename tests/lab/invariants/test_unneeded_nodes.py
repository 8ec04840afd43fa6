"""The autoscaler removes no node that was needed a moment ago."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings, ScaleDown
from nominee.lab.history.invariants.scaling.unneeded_nodes import UnneededNodes
from nominee.machinery.api.pb import core, devices
from tests.lab.invariants.histories import BEGIN, History, node, pod, result_of, violations_of

SETTINGS = ComponentSettings(scale_down=ScaleDown(unneeded_seconds=10, scan_seconds=1, threshold=0.5))


def ready(*taints: str, status: str = "True", cpu: str = "4") -> core.Node:
    found = node("n1", cpu=cpu, taints=taints)
    found.status.allocatable["memory"].string = "8Gi"
    found.status.conditions.add(type="Ready", status=status)
    return found


def tainted(*, cpu: str = "4") -> core.Node:
    return ready("ToBeDeletedByClusterAutoscaler", cpu=cpu)


def seconds(count: int) -> list[core.Node]:
    return [node("other")] * count


TAINTED = tainted()
LARGE, SMALL = pod("p", node="n1", cpu="3"), pod("p", node="n1", cpu="2")


def test_a_node_that_was_needed() -> None:
    history = History().put(ready(), *seconds(20), LARGE, *seconds(9)).delete(LARGE)
    history.put(*seconds(4), TAINTED)
    (violation,) = violations_of(UnneededNodes, history, SETTINGS)
    assert violation.message == (
        "the autoscaler removes the node 5.0 s after it was needed, with --scale-down-unneeded-time=10s"
    )
    assert violation.objects == ("Node n1",)


def test_a_node_that_is_needed_and_one_that_is_new() -> None:
    (violation,) = violations_of(
        UnneededNodes, History().put(ready(), LARGE, *seconds(20), TAINTED), SETTINGS
    )
    assert " 0.0 s after" in violation.message
    assert violations_of(UnneededNodes, History().put(ready(), *seconds(8), TAINTED), SETTINGS)


@pytest.mark.parametrize(
    "history",
    [
        History().put(ready(), *seconds(10), TAINTED),
        History().state(ready()).put(TAINTED),
        History().put(ready(), SMALL, *seconds(20), TAINTED),
        History().put(ready(), *seconds(20), LARGE, *seconds(6)).delete(LARGE).put(TAINTED),
        History().put(ready(), LARGE, *seconds(9)).delete(LARGE).put(*seconds(10), TAINTED),
        History().put(ready(cpu="4"), LARGE, *seconds(20), ready(cpu="8"), *seconds(11), tainted(cpu="8")),
        History().put(ready(cpu="0"), SMALL, *seconds(20), ready(), *seconds(11), TAINTED),
    ],
    ids=[
        "new",
        "older than the history",
        "half",
        "shorter than a look",
        "long ago",
        "larger",
        "without room",
    ],
)
def test_nodes_that_were_not_needed(history: History) -> None:
    result = result_of(UnneededNodes, history, SETTINGS)
    assert result.violations == ()
    assert result.checked == 1


def test_other_nodes_are_not_checked() -> None:
    slices = devices.ResourceSlice()
    slices.metadata.name, slices.spec.nodeName = "s", "n1"
    ends = pod("p", node="n1", cpu="3", deletes_at=BEGIN + 9)
    unready = ready("ToBeDeletedByClusterAutoscaler", status="Unknown")
    with_gpu = tainted()
    with_gpu.status.allocatable["nvidia.com/gpu"].string = "1"
    for history in (
        History().put(ready(), unready),
        History().put(slices, ready(), TAINTED),
        History().put(ready(), LARGE, with_gpu),
        History().put(ready(), LARGE, ends, *seconds(9), TAINTED),
    ):
        result = result_of(UnneededNodes, history, SETTINGS)
        assert (result.checked, result.violations) == (0, ())


def test_without_the_options_it_is_not_checked() -> None:
    result = result_of(UnneededNodes, History().put(ready(), TAINTED))
    assert result.unchecked == "the options of an autoscaler are not known"


@pytest.mark.parametrize(("priority", "is_needed"), [(-11, False), (-10, True)])
def test_expendable_pods_do_not_need_their_node(priority: int, is_needed: bool) -> None:
    large = pod("p", node="n1", cpu="3")
    large.spec.priority = priority
    history = History().put(ready(), large, *seconds(20), TAINTED)
    assert bool(violations_of(UnneededNodes, history, SETTINGS)) is is_needed


@pytest.mark.parametrize(
    ("ahead", "terminates", "count"),
    [(0, 35, 1), (0, 45, 0), (61, 9, 0), (20, 9, 1)],
    ids=["not for long", "for long", "for long by a clock that is ahead", "by a clock that is ahead little"],
)
def test_a_pod_that_terminates_for_long_does_not_count(ahead: int, terminates: int, count: int) -> None:
    """It is gone 4 s before the taint; by the clock of the autoscaler it had not counted for longer."""
    stays, ends = pod("p", node="n1", cpu="3"), pod("p", node="n1", cpu="3", deletes_at=BEGIN + 9)
    for each in (stays, ends):
        each.spec.terminationGracePeriodSeconds = 1
    history = History().put(ready(), stays, *seconds(5), ends, *seconds(terminates)).delete(ends)
    history.put(*seconds(3))
    tainted_node = tainted()
    tainted_node.spec.taints[0].value = str(int(history.now) + ahead)
    assert len(violations_of(UnneededNodes, history.put(tainted_node), SETTINGS)) == count


def test_a_pod_that_stays_counts_whatever_the_clock_says() -> None:
    tainted_node = tainted()
    tainted_node.spec.taints[0].value = str(int(BEGIN) + 99)
    history = History().put(ready(), LARGE, *seconds(20)).delete(LARGE)
    assert violations_of(UnneededNodes, history.put(tainted_node), SETTINGS)


@pytest.mark.parametrize(
    ("pending", "cpu", "allocated", "is_needed"),
    [("Infeasible", "3", "1", False), ("Deferred", "3", "1", True), ("", "1", "3", True)],
    ids=["infeasible", "deferred", "not made smaller yet"],
)
def test_a_resize_counts_as_for_the_scheduler(
    pending: str, cpu: str, allocated: str, is_needed: bool
) -> None:
    conditions = {"PodResizePending": pending} if pending else {}
    resized = pod("p", node="n1", cpu=cpu, allocated=allocated, conditions=conditions)
    history = History().put(ready(), resized, *seconds(20), TAINTED)
    assert bool(violations_of(UnneededNodes, history, SETTINGS)) is is_needed
