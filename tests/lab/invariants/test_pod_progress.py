"""A pod's status only moves forward."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from nominee.lab.history.invariants.pod_rules.late_rejections import LateRejections
from nominee.lab.history.invariants.pod_rules.pod_progress import PodProgress
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, node, pod, result_of, violations_of


def scheduled(
    status: str = "True", *, reason: str = "", node: str = "n1", phase: str = "Pending", uid: str = ""
) -> core.Pod:
    """Return a pod with the condition PodScheduled, without it if `status` is empty."""
    found = pod("p", node=node, phase=phase, uid=uid)
    if status:
        found.status.conditions.add(type="PodScheduled", status=status, reason=reason)
    return found


def gated(reason: str) -> core.Pod:
    """Return a pod with a scheduling gate."""
    found = scheduled("False", reason=reason, node="")
    found.spec.schedulingGates.add(name="wait")
    return found


WAITING = scheduled("False", reason="Unschedulable", node="")


def late_failure(uid: str = "") -> core.Pod:
    """Return a bound pod that became unschedulable."""
    return scheduled("False", reason="Unschedulable", uid=uid)


def created_again(*states: core.Pod) -> History:
    """Return a history in which another pod of the name was deleted before."""
    return History().put(WAITING).delete(WAITING).put(*states)


@pytest.mark.parametrize(
    "history",
    [
        History().put(WAITING, scheduled()),
        History().put(WAITING, scheduled(), scheduled(phase="Running")),
        History().put(scheduled("", node=""), scheduled()),
        History().put(scheduled(""), scheduled("", phase="Running"), scheduled(phase="Running")),
        History().put(scheduled(), scheduled("False", node="", uid="uid-2")),
        History().put(scheduled(), scheduled("", phase="Failed")),
        History().put(gated(""), gated("SchedulingGated"), scheduled("False", reason="x", node="")),
        created_again(scheduled(uid="2"), late_failure(uid="2")),
        created_again(gated(""), gated("Unschedulable")),
    ],
    ids=[
        "bound",
        "runs",
        "bound at once",
        "created with a node",
        "another pod of the name",
        "rejected",
        "gated",
        "a failure of the former pod",
        "a failure of the former pod, and gates",
    ],
)
def test_a_bound_pod_stays_scheduled(history: History) -> None:
    assert violations_of(PodProgress, history) == []


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (
            History().put(scheduled(node=""), scheduled(), scheduled("False", reason="Unschedulable")),
            "the pod is bound to node 'n1', and its PodScheduled became False (Unschedulable)",
        ),
        (
            History().put(gated("SchedulingGated"), gated("Unschedulable")),
            "the pod has scheduling gates, and its PodScheduled became False (Unschedulable)",
        ),
        (
            History().put(WAITING, scheduled("False", reason="Unschedulable")),
            "the pod was bound to node 'n1', and its PodScheduled is False (Unschedulable)",
        ),
        (
            History().put(scheduled("", node=""), scheduled("")),
            "the pod was bound to node 'n1', and its PodScheduled is unset",
        ),
        (
            History().put(scheduled(""), scheduled("False", reason="SchedulerError")),
            "the pod is bound to node 'n1', and its PodScheduled became False (SchedulerError)",
        ),
        (
            History().put(scheduled(), scheduled("")),
            "the pod is bound to node 'n1', and its PodScheduled became unset",
        ),
    ],
    ids=["a late failure", "gated", "bound unscheduled", "bound without it", "created with a node", "lost"],
)
def test_a_bound_pod_that_becomes_unscheduled(history: History, message: str) -> None:
    (violation,) = violations_of(PodProgress, history)
    assert violation.message == message
    assert violation.objects == ("Pod default/p",)
    assert violation.revisions == (history.next_revision - 1,)


@pytest.mark.parametrize(
    "states",
    [
        [*[scheduled(uid="2")] * 16, late_failure(uid="2")],
        [scheduled(node="", uid="2"), late_failure(uid="2")],
        [scheduled(uid="2"), scheduled("", uid="2")],
    ],
    ids=["too late", "bound by the write", "lost"],
)
def test_a_patch_of_a_former_pod_explains_no_other_write(states: list[core.Pod]) -> None:
    assert len(violations_of(PodProgress, created_again(*states))) == 1


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        (["Pending", "Running", "Succeeded"], ""),
        (["Pending", "Failed"], ""),
        (["Running", "Unknown", "Running"], ""),
        (["Running", "Pending"], "the pod was Running and is Pending again"),
        (["Failed", "Running"], "the pod was Failed and is Running again"),
        (["Succeeded", "Failed"], "the pod was Succeeded and is Failed again"),
    ],
)
def test_phases(phases: list[str], message: str) -> None:
    history = History().put(*(scheduled(phase=phase) for phase in phases))
    assert [each.message for each in violations_of(PodProgress, history)] == ([message] if message else [])


def counted(restarts: int, *, started: int = 5) -> core.Pod:
    """Return a pod whose container was restarted so often."""
    found = pod("p", node="n1", phase="Running")
    found.status.startTime.seconds = started
    found.status.containerStatuses.add(name="c", restartCount=restarts)
    return found


def test_restarts_and_start_time() -> None:
    assert violations_of(PodProgress, History().put(counted(0), counted(1), counted(1))) == []
    (fell,) = violations_of(PodProgress, History().put(counted(2), counted(0)))
    assert fell.message == "the restartCount of container 'c' fell from 2 to 0"
    (moved,) = violations_of(PodProgress, History().put(counted(1), counted(1, started=9)))
    assert moved.message == "the pod's startTime changed"


def failed(reason: str) -> core.Pod:
    """Return a pod that is Failed for a reason."""
    found = pod("p", node="n1", phase="Failed")
    found.status.reason = reason
    return found


RUNS = pod("p", node="n1", allocated="1")


def test_a_pod_that_ran_is_rejected() -> None:
    history = History().put(node("n1"), pod("p", node="n1"), RUNS, failed("OutOfcpu"))
    (violation,) = violations_of(LateRejections, history)
    assert violation.message == "node 'n1' had admitted the pod and rejects it: OutOfcpu"
    assert violation.objects == ("Pod default/p", "Node n1")
    assert violation.revisions == (3, 4)


@pytest.mark.parametrize(
    "history",
    [
        History().put(node("n1"), pod("p", node="n1"), failed("OutOfcpu")),
        History().put(node("n1"), RUNS, failed("DeadlineExceeded")),
        History().put(node("n1"), RUNS).delete(RUNS).put(pod("p", node="n1"), failed("OutOfpods")),
    ],
    ids=["at first", "for another reason", "another pod"],
)
def test_other_failures(history: History) -> None:
    assert violations_of(LateRejections, history) == []


@pytest.mark.parametrize(
    "writes",
    [(RUNS, node("n1", cpu="1")), (pod("p", node="n1"), node("n1", cpu="1"), RUNS)],
    ids=["after the first report", "between admission and report"],
)
def test_a_node_that_changed_may_reject_its_pods(writes: tuple[Message, ...]) -> None:
    result = result_of(LateRejections, History().put(node("n1"), *writes, failed("OutOfcpu")))
    assert result.violations == ()
    assert result.exceptions == {"node-changed": 1}


@pytest.mark.parametrize(("writes", "count"), [(0, 0), (6, 1)])
def test_a_restarted_kubelet_may_count_a_pod_that_it_had_preempted(writes: int, count: int) -> None:
    victim = pod("victim", node="n1", phase="Failed")
    victim.status.reason = "Preempting"
    others = (pod(f"other-{number}") for number in range(writes))
    history = History().put(node("n1"), RUNS, victim, *others, failed("OutOfcpu"))
    assert len(violations_of(LateRejections, history)) == count
