"""Time without the absences of all API servers."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.served_time import ABSENT_SECONDS, ServedTime
from nominee.lab.history.invariants.objects.condition_times import ConditionTimes
from nominee.lab.history.invariants.pod_rules.allocations import Allocations
from nominee.lab.history.invariants.pod_rules.deferred_resizes import DeferredResizes
from nominee.lab.history.invariants.pod_rules.late_rejections import LateRejections
from nominee.lab.history.invariants.pod_rules.pod_progress import PodProgress
from nominee.lab.history.invariants.pod_rules.pod_termination import PodTermination
from nominee.lab.history.invariants.scaling.node_draining import NodeDraining
from tests.lab.invariants.histories import BEGIN, History, lease, node, pod, result_of, violations_of

ABSENT = 65
LATE_PATCH = pod("p", uid="uid-second", node="n1")
LATE_PATCH.status.conditions.add(type="PodScheduled", status="False", reason="Unschedulable")
BOUND = pod("p", uid="uid-second", node="n1", conditions={"PodScheduled": ""})


def served_time_of(history: History) -> ServedTime:
    found = ServedTime()
    for revision in history.revisions:
        found.observe(revision)
    return found


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        (1, 2, 1),
        (1, 70, 3),
        (30, 70, 2),  # from the middle of an absence
        (1, 40, 1),
        (30, 40, 0),
        (68, 70, 2),
        (float("-inf"), 70, float("inf")),
    ],
)
def test_an_absence_does_not_count(start: float, end: float, seconds: float) -> None:
    history = History().put(lease("n1"), lease("n1")).wait(ABSENT).put(lease("n1"), lease("n1"))
    assert served_time_of(history).between(BEGIN + start, BEGIN + end) == seconds


def test_renewals_of_leases_show_an_api_server() -> None:
    history = History()
    for _ in range(5):
        history.put(lease("n1")).wait(int(ABSENT_SECONDS) - 1)
    assert served_time_of(history).between(BEGIN, history.now) == history.now - BEGIN


def test_what_etcd_removes_shows_none() -> None:
    """A key whose lease is over."""
    history = History().put(lease("n1")).wait(20).delete(lease("n1")).wait(20).put(lease("n1"))
    assert served_time_of(history).between(BEGIN + 1, history.now - 1) == 0.0


@pytest.mark.parametrize(("absent", "count"), [(True, 0), (False, 1)])
def test_a_patch_for_a_former_pod_may_come_after_an_absence(absent: bool, count: int) -> None:
    history = History().put(pod("p", uid="uid-first")).delete(pod("p", uid="uid-first"))
    history = history.wait(ABSENT) if absent else history.put(*[node("n1", cpu="4")] * ABSENT)
    assert len(violations_of(PodProgress, history.put(BOUND, LATE_PATCH))) == count


@pytest.mark.parametrize(("absent", "count"), [(True, 0), (False, 1)])
def test_a_kubelet_reports_the_end_of_a_pod_after_an_absence(absent: bool, count: int) -> None:
    """It has written what a pod got, and not yet that another one has ended."""
    first, second = (pod(name, node="n1", cpu="3", allocated="3") for name in ("a", "b"))
    history = History().put(node("n1", cpu="4"), first, second)
    history = history.wait(ABSENT) if absent else history.put(*[lease("n1")] * ABSENT)
    history.put(node("n1", cpu="4")).put(pod("a", node="n1", cpu="3", phase="Succeeded"))
    assert len(violations_of(Allocations, history)) == count


@pytest.mark.parametrize(("absent", "count"), [(True, 0), (False, 1)])
def test_an_autoscaler_sees_a_pod_after_an_absence(absent: bool, count: int) -> None:
    tainted = node("n1", taints=["ToBeDeletedByClusterAutoscaler"])
    history = History().put(node("n1"), pod("p"), pod("p", node="n1", phase="Running"))
    history = history.wait(ABSENT) if absent else history.put(*[lease("n1")] * ABSENT)
    assert len(violations_of(NodeDraining, history.put(tainted).delete(tainted))) == count


def _after(history: History, *, absent: bool) -> History:
    """Add ABSENT seconds without a write, or with the renewals of a lease; then one more."""
    return (history.wait(ABSENT) if absent else history.put(*[lease("n1")] * ABSENT)).put(lease("n1"))


@pytest.mark.parametrize(("absent", "count"), [(True, 0), (False, 1)])
def test_a_pod_without_a_node_ends_after_an_absence(absent: bool, count: int) -> None:
    """The API server ended between the two writes of its deletion; the pod GC does the second one."""
    history = _after(History().put(pod("p", deletes_at=BEGIN)), absent=absent)
    result = result_of(PodTermination, history, evidence=Evidence(now=history.now))
    assert (len(result.violations), result.exceptions) == (count, {"in-time": 1} if absent else {})


@pytest.mark.parametrize(("absent", "count"), [(True, 0), (False, 1)])
def test_a_kubelet_reports_a_transition_after_an_absence(absent: bool, count: int) -> None:
    """It was in the second of the former one."""
    first, second = (pod("p", node="n1") for _ in range(2))
    for each, status in ((first, "True"), (second, "False")):
        each.status.conditions.add(type="Ready", status=status).lastTransitionTime.seconds = int(BEGIN)
    history = _after(History().put(first), absent=absent).put(second)
    assert len(violations_of(ConditionTimes, history)) == count


@pytest.mark.parametrize(("absent", "count"), [(True, 0), (False, 1)])
def test_a_deferred_resize_is_queued_after_an_absence(absent: bool, count: int) -> None:
    deferred = pod("p", node="n1", conditions={"PodResizePending": "Deferred"})
    history = _after(History().put(pod("p", node="n1"), deferred), absent=absent)
    settings, evidence = (
        ComponentSettings(preempts_for_resizes=True),
        Evidence(now=history.now, queued_pods=frozenset()),
    )
    assert len(result_of(DeferredResizes, history, settings, evidence).violations) == count


@pytest.mark.parametrize(("absent", "count"), [(True, 0), (False, 1)])
def test_a_kubelet_refuses_a_pod_beside_its_victim_after_an_absence(absent: bool, count: int) -> None:
    reported = pod("p", node="n1", cpu="1", allocated="1")
    victim, refused = pod("v", node="n1", phase="Failed"), pod("p", node="n1", phase="Failed")
    victim.status.reason, refused.status.reason = "Preempting", "OutOfcpu"
    history = _after(History().put(reported, victim), absent=absent).put(refused)
    assert len(violations_of(LateRejections, history)) == count


def test_an_absence_may_last_until_the_end() -> None:
    history = History().put(lease("n1"), lease("n1"))
    served = served_time_of(history)
    last = history.revisions[-1].time
    assert served.between(last - 1, last + ABSENT_SECONDS) == 1 + ABSENT_SECONDS
    assert served.between(last - 1, last + ABSENT) == 1
