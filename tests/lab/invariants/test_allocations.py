"""Allocated resources stay within allocatable."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import Evidence
from nominee.lab.history.invariants.pod_rules.allocations import Allocations
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import BEGIN, History, event, lease, node, pod, result_of, violations_of

NODE = node("n1", cpu="2")


A, B = pod("a", node="n1", cpu="1", allocated="1"), pod("b", node="n1", cpu="1", allocated="1")
C = pod("c", node="n1", cpu="1", allocated="1")
HEARTBEATS = [node("other", cpu=str(number)) for number in range(1, 8)]


def _later(history: History) -> Evidence:
    return Evidence(now=history.now + 60.0)


VIOLATED = {
    "a pod too many": (History().put(NODE, A, B, C), 4),
    "seen at the next report after 5 s": (History().put(NODE, A, B, C, *HEARTBEATS, NODE), 4),
    "a resize too large": (History().put(NODE, A, B, pod("b", node="n1", cpu="1500m", allocated="1500m")), 4),
    "more after allocatable shrank": (
        History().put(NODE, A, B, *HEARTBEATS, node("n1", cpu="1"), *HEARTBEATS)
        .put(pod("b", node="n1", cpu="1100m", allocated="1100m")),
        19,
    ),
    "reported long after it shrank": (History().put(NODE, A, node("n1", cpu="1"), *HEARTBEATS, B), 11),
    "resized after a late report": (
        History().put(NODE, A, pod("b", node="n1", cpu="1"), node("n1", cpu="1"), *HEARTBEATS, B, *HEARTBEATS)
        .put(pod("b", node="n1", cpu="3", allocated="3"), *HEARTBEATS, NODE, *HEARTBEATS),
        20,
    ),
    "more after an absence": (
        History().put(lease("n1"), NODE, A, B, node("n1", cpu="1"), *HEARTBEATS)
        .put(pod("b", node="n1", cpu="1", allocated="900m")).wait(65)
        .put(lease("n1"), C, *[lease("n1"), node("other")] * 12),
        80,
    ),
    "again more after it shrank": (
        History().put(NODE, A, B, node("n1", cpu="500m"), *HEARTBEATS).delete(A).put(C), 13
    ),
    "too many pods": (
        History().put(NODE).put(*[pod(f"p{number}", node="n1", allocated="1m") for number in range(111)]),
        112,
    ),
}  # fmt: skip

HELD = {
    "full": History().put(NODE, A, B),
    "replaced": History().put(NODE, A, B).delete(A).put(C),
    "ended": History().put(NODE, A, pod("a", node="n1", cpu="1", phase="Succeeded"), B, C),
    "bound, not admitted yet": History().put(NODE, A, B, pod("c", node="n1", cpu="1")),
    "rejected by the kubelet": History().put(NODE, A, B, pod("c", node="n1", cpu="1", phase="Failed")),
    "desired, not allocated": History().put(NODE, A, pod("b", node="n1", cpu="3", allocated="1")),
    "on another node": History().put(NODE, node("n2"), A, B, pod("c", node="n2", allocated="1")),
    "allocatable shrank": History().put(NODE, A, B, node("n1", cpu="1")),
    "fits again": History().put(NODE, A, B, node("n1", cpu="1")).delete(A).put(NODE, C),
    "allocated before it shrank, reported after": History().put(NODE, A, node("n1", cpu="1"), B),
    "bound before it shrank, reported long after": (
        History().put(NODE, A, pod("b", node="n1", cpu="1"), node("n1", cpu="1"), *HEARTBEATS, B)
    ),
    "shrank before an absence": (
        History().put(lease("n1"), NODE, A, node("n1", cpu="1")).wait(65)
        .put(lease("n1"), B, *[lease("n1"), node("other")] * 12)
    ),
    "fewer pods on a node that shrank": (
        History().put(NODE, A, B, node("n1", cpu="500m"), *HEARTBEATS).delete(A)
    ),
    "no node": History().put(NODE, A, B).delete(NODE).put(C),
}  # fmt: skip


def _with_gpu(*provided: str) -> core.Pod:
    """Return a pod that runs with a gpu; devices provide these resources."""
    found = core.Pod()
    found.CopyFrom(A)
    found.status.containerStatuses[0].allocatedResources["example.com/gpu"].string = "1"
    found.status.containerStatuses[0].resources.requests["example.com/gpu"].string = "1"
    for name in provided:
        found.status.extendedResourceClaimStatus.requestMappings.add(resourceName=name)
    return found


VIOLATED["a resource that no device provides"] = (History().put(NODE, _with_gpu("example.com/nic")), 2)
HELD["a resource that a device provides"] = History().put(NODE, _with_gpu("example.com/gpu"))


@pytest.mark.parametrize("case", VIOLATED)
def test_violations(case: str) -> None:
    history, revision = VIOLATED[case]
    (violation,) = violations_of(Allocations, history, evidence=_later(history))
    assert violation.revisions == (revision,)
    assert "Node n1" in violation.objects


@pytest.mark.parametrize("case", HELD)
def test_histories_without_violation(case: str) -> None:
    assert violations_of(Allocations, HELD[case], evidence=_later(HELD[case])) == []


def test_the_message_has_the_sums_and_the_pods() -> None:
    history = History().put(NODE, A, B, C)
    (violation,) = violations_of(Allocations, history, evidence=Evidence(now=BEGIN + 60.0))
    assert violation.message == (
        "more is allocated on node 'n1' than allocatable for 56 s: cpu: 3000 of 2000 (cpu in milli-units)"
    )
    assert violation.objects == ("Pod default/c", "Node n1", "Pod default/a", "Pod default/b")


def test_an_excess_that_does_not_last_is_an_exception() -> None:
    """A kubelet may report a new pod before the end of the one whose place it has."""
    history = History().put(NODE, A, B, C).delete(A)
    result = result_of(Allocations, history, evidence=_later(history))
    assert result.violations == ()
    assert result.exceptions == {"settling": 1}
    just_now = History().put(NODE, A, B, C)
    assert violations_of(Allocations, just_now) == []


def test_the_larger_of_allocated_and_actual_counts() -> None:
    shrinking = pod("b", node="n1", cpu="1", allocated="1")
    shrinking.status.containerStatuses[0].resources.requests["cpu"].string = "1500m"
    history = History().put(NODE, A, shrinking)
    assert len(violations_of(Allocations, history, evidence=_later(history))) == 1


def test_requests_count_where_the_kubelet_reports_no_allocation() -> None:
    """A kubelet without InPlacePodVerticalScaling keeps the first requests, whatever is patched later."""
    old = pod("b", node="n1", cpu="1", allocated="1")
    old.status.containerStatuses[0].ClearField("allocatedResources")
    old.status.containerStatuses[0].ClearField("resources")
    patched = pod("b", node="n1", cpu="5")
    patched.status.CopyFrom(old.status)
    patched.status.phase = "Pending"
    history = History().put(NODE, A, old, patched)
    assert violations_of(Allocations, history, evidence=_later(history)) == []
    history.put(C)
    assert len(violations_of(Allocations, history, evidence=_later(history))) == 1


def test_a_shrink_is_counted_once() -> None:
    history = History().put(NODE, A, B, node("n1", cpu="1"), A, B)
    assert result_of(Allocations, history).exceptions == {"allocatable-shrank": 1}


@pytest.mark.parametrize(
    ("victim", "seconds", "count"),
    [("a", 30, 0), ("a", 36, 1), ("c", 30, 1)],
    ids=["late", "later", "another"],
)
def test_the_end_of_a_preempted_pod_may_be_reported_late(victim: str, seconds: int, count: int) -> None:
    preempted = event("e", "Preempting", {"a": A, "c": pod("elsewhere", node="n2")}[victim])
    history = History().put(NODE, A, B, preempted, C, *[node("other")] * seconds, NODE).delete(A)
    result = result_of(Allocations, history, evidence=_later(history))
    assert len(result.violations) == count
    assert ("preempted" in result.exceptions) is (count == 0)


def ended(seconds: float) -> core.Pod:
    """Return pod a, whose container has ended so many seconds after the begin."""
    found = pod("a", node="n1", cpu="1", phase="Succeeded")
    state = found.status.containerStatuses.add(name="c").state
    state.terminated.finishedAt.seconds = int(BEGIN + seconds)
    return found


@pytest.mark.parametrize(
    ("finished", "seconds", "count"),
    [(3.0, 30, 0), (20.0, 30, 1), (3.0, 36, 1)],
    ids=["before the excess", "after it began", "later"],
)
def test_the_end_of_a_pod_may_be_reported_late(finished: float, seconds: int, count: int) -> None:
    """A kubelet gives away the room of a pod that has ended while the report of that hangs."""
    history = History().put(
        NODE, A, B, C, *[node("other")] * 8, NODE, B, pod("b", node="n1", allocated="900m")
    )
    history.put(
        *[node("other")] * (seconds - 11), pod("b", node="n1", cpu="1", allocated="1"), ended(finished)
    )
    result = result_of(Allocations, history, evidence=_later(history))
    assert len(result.violations) == count
    assert ("ended" in result.exceptions) is (count == 0)
    for violation in result.violations:
        assert "cpu: 3000 of 2000" in violation.message or "cpu: 2900 of 2000" in violation.message


@pytest.mark.parametrize(("finished", "count"), [(3.0, 0), (20.0, 1)])
def test_the_end_of_a_pod_is_by_the_clock_of_its_kubelet(finished: float, count: int) -> None:
    renewed = lease("n1")
    history = History().put(NODE, A, B, C, *[node("other")] * 8, NODE, B)
    renewed.spec.renewTime.seconds = int(history.now) + 61
    history.put(renewed, *[node("other")] * 15, ended(finished + 60.0))
    assert len(violations_of(Allocations, history, evidence=_later(history))) == count


@pytest.mark.parametrize(
    ("finished", "reports", "count"),
    [(3.0, True, 0), (20.0, True, 1), (3.0, False, 1)],
    ids=["before the excess", "after it began", "not reported"],
)
def test_a_kubelet_that_was_away_reports_the_end_of_a_pod(finished: float, reports: bool, count: int) -> None:
    """It was killed when it had given away the room, and came back after more than a minute."""
    renewed, others = lease("n1"), [lease("n2")]
    history = History().put(renewed, NODE, A, B, C, NODE, renewed, *others * 65, NODE, renewed, *others * 6)
    history.put(NODE, ended(finished + 1.0) if reports else renewed, NODE, *others * 36, NODE)
    assert len(violations_of(Allocations, history, evidence=_later(history))) == count


@pytest.mark.parametrize(("deleted", "count"), [(3, 0), (20, 1)])
def test_a_pod_whose_containers_never_ran_ended_with_its_deletion(deleted: int, count: int) -> None:
    found = pod("a", node="n1", cpu="1", phase="Failed", deletes_at=BEGIN + deleted + 2)
    found.metadata.deletionGracePeriodSeconds = 2
    found.status.containerStatuses.add(name="c").state.waiting.reason = "ContainerCreating"
    history = History().put(NODE, A, B, C, *[node("other")] * 8, NODE, B).put(*[node("other")] * 19, found)
    result = result_of(Allocations, history, evidence=_later(history))
    assert len(result.violations) == count
    assert ("ended" in result.exceptions) is (count == 0)


def test_an_excess_without_a_report_of_an_end_is_found() -> None:
    """Several pods too many: the end of one of them explains nothing."""
    large = pod("c", node="n1", cpu="2500m", allocated="2500m")
    history = History().put(NODE, A, B, large, *[node("other")] * 8, pod("b", node="n1", allocated="900m"))
    assert len(violations_of(Allocations, history.put(ended(3.0)))) == 1
