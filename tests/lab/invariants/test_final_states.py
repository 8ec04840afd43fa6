"""The invariants of the end: deferred resizes, checkpoints, deleted pods."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.check import Result
from nominee.lab.history.invariants.checking.evidence import CheckpointedPod, ComponentSettings, Evidence
from nominee.lab.history.invariants.pod_rules.checkpoints import Checkpoints
from nominee.lab.history.invariants.pod_rules.deferred_resizes import DeferredResizes
from nominee.lab.history.invariants.pod_rules.pod_termination import PodTermination
from nominee.machinery.api.objects import ObjectKey
from tests.lab.invariants.histories import BEGIN, History, lease, node, pod, result_of, violations_of

PREEMPTS = ComponentSettings(preempts_for_resizes=True)
DEFERRED = pod("p", node="n1", conditions={"PodResizePending": "Deferred"})
QUEUED = frozenset({ObjectKey("default", "p")})


def _deferred(history: History, *, queued: frozenset[ObjectKey] = frozenset(), later: float = 60.0) -> Result:
    evidence = Evidence(now=history.now + later, queued_pods=queued)
    return result_of(DeferredResizes, history, PREEMPTS, evidence)


def test_a_deferred_resize_in_no_queue() -> None:
    history = History().put(pod("p", node="n1"), DEFERRED)
    (violation,) = _deferred(history).violations
    assert violation.message == "the resize is deferred, and the pod is in no queue"
    assert violation.revisions == (2,)
    (of_another,) = _deferred(history, queued=frozenset({ObjectKey("other", "p")})).violations
    assert of_another == violation


DISABLED = pod(
    "p", node="n1", conditions={"PodResizePending": "Deferred", "PodResizePreemptionDisabled": "Policy"}
)
POLICY = node("n1")
POLICY.spec.podPreemptionPolicy.disableResizePreemption.append("example.com/owner")


@pytest.mark.parametrize(
    ("history", "exceptions"),
    [
        (History().put(pod("p", node="n1"), DEFERRED, pod("p", node="n1")), {}),
        (History().put(pod("p", node="n1", conditions={"PodResizePending": "Infeasible"})), {}),
        (History().put(DEFERRED).delete(DEFERRED), {}),
        (History().put(pod("p", node="n1", phase="Failed", conditions={"PodResizePending": "Deferred"})), {}),
        (History().put(DISABLED), {"disabled": 1}),
        (History().put(POLICY, DEFERRED), {"disabled": 1}),
    ],
    ids=["done", "infeasible", "deleted", "ended", "disabled by the kubelet", "disabled by the node"],
)
def test_a_resize_that_needs_no_queue(history: History, exceptions: dict[str, int]) -> None:
    result = _deferred(history)
    assert (result.violations, result.exceptions) == ((), exceptions)


def test_a_queued_or_recent_resize() -> None:
    history = History().put(DEFERRED)
    assert _deferred(history, queued=QUEUED).violations == ()
    assert _deferred(history, later=2.0).exceptions == {"recent": 1}
    assert len(_deferred(History().put(POLICY, node("n1"), DEFERRED)).violations) == 1


def test_deferred_resizes_are_unchecked_without_the_gate_or_the_queue() -> None:
    history = History().put(DEFERRED)
    with_queue = Evidence(now=history.now, queued_pods=frozenset())
    assert "is off" in result_of(DeferredResizes, history, ComponentSettings(), with_queue).unchecked
    assert "queue is not available" in result_of(DeferredResizes, history, PREEMPTS).unchecked


REPORTED = pod("p", node="n1", cpu="1", allocated="500m")


def _checkpoints(history: History, **requests: str) -> Result:
    """Compare with a checkpoint in which the container has these requests; none: it lacks the pod."""
    pods = {"uid-p": CheckpointedPod(requests={"c": requests})} if requests else {}
    return result_of(Checkpoints, history, evidence=Evidence(now=history.now, checkpoints={"n1": pods}))


def test_a_checkpoint_that_differs() -> None:
    (violation,) = _checkpoints(History().put(REPORTED), cpu="1").violations
    assert violation.message == (
        "container c: the status has cpu 500m as allocatedResources, the checkpoint cpu 1000m"
    )
    assert violation.objects == ("Pod default/p", "Node n1")
    (missing,) = _checkpoints(History().put(REPORTED)).violations
    assert missing.message == "the status has allocatedResources, and the checkpoint does not have the pod"
    assert len(_checkpoints(History().put(REPORTED), cpu="500m", memory="1Gi").violations) == 1


@pytest.mark.parametrize(
    "history",
    [
        History().put(pod("p", node="n1", cpu="1")),
        History().put(REPORTED).delete(REPORTED),
        History().put(REPORTED, pod("p", node="n1", allocated="500m", phase="Failed")),
        History().put(REPORTED, pod("p", node="n1", allocated="500m", deletes_at=BEGIN)),
    ],
    ids=["not reported yet", "deleted", "ended", "terminating"],
)
def test_pods_whose_checkpoint_may_differ(history: History) -> None:
    assert _checkpoints(history).violations == ()


def test_checkpoints_that_match() -> None:
    result = _checkpoints(History().put(pod("p", node="n1", allocated="300m"), REPORTED), cpu="0.5")
    assert (result.violations, result.checked) == ((), 1)
    history = History().put(REPORTED)
    elsewhere = Evidence(now=history.now, checkpoints={"n2": {}})
    assert result_of(Checkpoints, history, evidence=elsewhere).exceptions == {"no-file": 1}
    assert "not available" in result_of(Checkpoints, history).unchecked


READY = node("n1")
READY.status.conditions.add(type="Ready", status="True")
NOT_READY = node("n1")
NOT_READY.status.conditions.add(type="Ready", status="Unknown")
TERMINATING = pod("p", node="n1", deletes_at=BEGIN + 30)


def _end(history: History, *, renewals: range = range(10, 300, 10)) -> Result:
    """Return the result 300 s after BEGIN; node n1's lease is renewed at these seconds, n2's all the time."""
    for second in sorted({*range(9, 300, 10), *renewals}):
        history.next_revision = second
        history.put(lease("n1" if second in renewals else "n2"))
    return result_of(PodTermination, history, evidence=Evidence(now=BEGIN + 300))


def test_a_deleted_pod_that_does_not_end() -> None:
    (violation,) = _end(History().put(READY, pod("p", node="n1"), TERMINATING)).violations
    assert violation.message == (
        "the pod, on node 'n1', which is ready, exists 270 s after its deletionTimestamp"
    )
    assert violation.revisions == (3,)
    (unbound,) = _end(History().put(pod("p", deletes_at=BEGIN))).violations
    assert "without a node" in unbound.message


@pytest.mark.parametrize(
    ("history", "exceptions"),
    [
        (History().put(READY, TERMINATING).delete(TERMINATING), {}),
        (History().put(READY, pod("p", node="n1")), {}),
        (History().put(READY, NOT_READY, TERMINATING), {"no-kubelet": 1}),
        (History().put(READY, TERMINATING).delete(READY), {"no-kubelet": 1}),
        (
            History().put(READY, pod("p", node="n1", deletes_at=BEGIN, finalizers=["example.com/keep"])),
            {"finalizers": 1},
        ),
        (History().put(READY, pod("p", node="n1", deletes_at=BEGIN + 275)), {"in-time": 1}),
    ],
    ids=["gone", "not deleted", "not ready", "no node", "finalizer", "within the margin"],
)
def test_deleted_pods_that_may_exist(history: History, exceptions: dict[str, int]) -> None:
    result = _end(history)
    assert (result.violations, result.exceptions) == ((), exceptions)


@pytest.mark.parametrize(
    ("renewals", "violations"),
    [
        (range(10, 300, 10), 1),
        (range(10, 265, 10), 1),
        (range(10, 260, 10), 0),  # it died
        (range(0), 0),
        (range(270, 300, 10), 0),  # it came back
        (range(250, 300, 10), 1),
        (range(10, 300, 45), 0),
    ],
)
def test_a_node_needs_a_kubelet_that_renews_its_lease(renewals: range, violations: int) -> None:
    result = _end(History().put(READY, TERMINATING), renewals=renewals)
    assert len(result.violations) == violations
    assert result.exceptions == ({} if violations else {"no-kubelet": 1})


def test_a_late_deletion_with_a_shorter_grace_period_moves_the_deletion_timestamp() -> None:
    first, forced = pod("p", node="n1", deletes_at=BEGIN + 1), pod("p", node="n1", deletes_at=BEGIN + 9)
    first.metadata.deletionGracePeriodSeconds, forced.metadata.deletionGracePeriodSeconds = 1, 0
    result = result_of(PodTermination, History().put(first, forced).delete(forced))
    assert (result.violations, result.exceptions) == ((), {"forced-late": 1})


def test_a_deletion_timestamp_only_moves_to_an_earlier_time() -> None:
    earlier, later = pod("p", node="n1", deletes_at=BEGIN + 1), pod("p", node="n1", deletes_at=BEGIN + 40)
    assert violations_of(PodTermination, History().put(TERMINATING, earlier)) == []
    (moved,) = violations_of(PodTermination, History().put(TERMINATING, later))
    assert moved.message == "the deletionTimestamp moved 10 s later"
    (lost,) = violations_of(PodTermination, History().put(TERMINATING, pod("p", node="n1")))
    assert "lost its deletionTimestamp" in lost.message
    assert violations_of(PodTermination, History().put(TERMINATING, pod("p", uid="other"))) == []
