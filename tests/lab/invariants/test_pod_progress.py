"""A pod's status only moves forward."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from nominee.lab.history.invariants.pod_rules.late_rejections import LateRejections
from nominee.lab.history.invariants.pod_rules.pod_progress import PodProgress
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import BEGIN, History, leader, lease, node, pod, result_of, violations_of


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


def refused(message: str) -> core.Pod:
    """Return a bound pod, about which a scheduler says that its binding failed."""
    found = scheduled("False", reason="SchedulerError")
    found.status.conditions[0].message = message
    return found


ASSIGNED = refused('running Bind plugin "DefaultBinder": pod p is already assigned to node "n1"')


def test_a_gated_pod_is_judged_when_its_condition_is_written() -> None:
    former, gated = pod("p", uid="former"), pod("p")
    gated.spec.schedulingGates.add(name="wait")
    reached = copy_of(gated)
    reached.status.conditions.add(type="PodScheduled", status="False", reason="Unschedulable")
    later = copy_of(reached)
    later.status.resourceClaimStatuses.add(name="gpu", resourceClaimName="c")
    history = History().put(former).delete(former).put(gated, reached, *[node("n1")] * 20, later)
    assert violations_of(PodProgress, history) == []


@pytest.mark.parametrize("failed", [ASSIGNED, late_failure(), refused("no answer")])
def test_an_attempt_may_fail_beside_the_binding_of_another_leader(failed: core.Pod) -> None:
    history = History().put(leader("s1"), scheduled(), leader("s2"), failed)
    result = result_of(PodProgress, history)
    assert (result.violations, result.exceptions) == ((), {"new-leader": 1})


@pytest.mark.parametrize(
    "history",
    [
        History().put(leader("s1"), scheduled(), leader("s1"), ASSIGNED),
        History().put(leader("s1"), leader("s2")).wait(60).put(scheduled(), ASSIGNED),
        History().put(leader("s1"), scheduled(), *[node("n1")] * 20, leader("s2"), ASSIGNED),
        History().put(leader("s1"), leader("s2"), *[node("n1")] * 9, scheduled(), refused("no answer")),
    ],
    ids=["the same leader", "long before", "bound long before", "bound by the new leader"],
)
def test_a_new_leader_explains_no_other_failure(history: History) -> None:
    assert len(violations_of(PodProgress, history)) == 1


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


def failed(reason: str, name: str = "p") -> core.Pod:
    """Return a pod that is Failed for a reason."""
    found = pod(name, node="n1", phase="Failed")
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


def test_a_node_that_lost_a_label_shortly_before_the_binding_may_reject_its_pods() -> None:
    zone = node("n1")
    zone.metadata.labels["zone"] = "a"
    bound, rejected = pod("p", node="n1"), failed("NodeAffinity")
    before = History().put(zone, node("n1"), bound, RUNS, *[node("n2")] * 20, rejected)
    assert result_of(LateRejections, before).exceptions == {"node-changed": 1}
    long_before = History().put(zone, node("n1"), *[node("n2")] * 20, bound, RUNS, rejected)
    added = History().put(node("n1"), zone, bound, RUNS, rejected)
    other_reason = History().put(zone, node("n1"), bound, RUNS, *[node("n2")] * 20, failed("OutOfcpu"))
    for history in (long_before, added, other_reason):
        assert len(violations_of(LateRejections, history)) == 1


@pytest.mark.parametrize(("writes", "count"), [(0, 0), (6, 1)])
def test_a_restarted_kubelet_may_count_a_pod_that_it_had_preempted(writes: int, count: int) -> None:
    victim = pod("victim", node="n1", phase="Failed")
    victim.status.reason = "Preempting"
    others = (pod(f"other-{number}") for number in range(writes))
    history = History().put(node("n1"), RUNS, victim, *others, failed("OutOfcpu"))
    assert len(violations_of(LateRejections, history)) == count


def _critical(created: int, *, cpu: str = "1") -> core.Pod:
    found = pod("critical", node="n1", cpu=cpu, allocated="1")
    found.spec.priority = 2_000_000_000
    found.metadata.creationTimestamp.seconds = created
    return found


def _at(found: core.Pod) -> core.Pod:
    """Return the pod, created 10 s after the epoch."""
    found.metadata.creationTimestamp.seconds = 10
    return found


_ENDED = pod("critical", node="n1", phase="Succeeded")


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ([], [_critical(10)], 0),
        ([], [_critical(11)], 1),
        ([_critical(10)], [], 1),
        ([_critical(10)], [_critical(10, cpu="2")], 0),
        ([], [pod("critical", node="n1", allocated="1")], 0),
        ([], [pod("critical"), pod("critical", node="n1", allocated="1")], 1),
        ([], [pod("critical", node="n1"), _ENDED], 0),
        ([], [pod("critical", node="n1"), _ENDED, *[node("n2")] * 6], 1),
        ([], [_critical(10), _ENDED], 1),
        ([], [pod("critical", node="n1"), failed("OutOfcpu", "critical")], 1),
    ],
    ids=[
        "came later",
        "younger",
        "there before",
        "resized later",
        "bound by its client",
        "bound",
        "ended at once",
        "ended",
        "ended after it ran",
        "refused",
    ],
)
def test_a_restarted_kubelet_may_admit_another_pod_first(
    before: list[core.Pod], after: list[core.Pod], count: int
) -> None:
    """The younger of two pods in whole seconds may be the one that ran, and that the other one preempted."""
    history = History().put(
        node("n1"), *before, _at(pod("p")), _at(pod("p", node="n1", allocated="1")), *after
    )
    result = result_of(LateRejections, history.put(_at(failed("OutOfcpu"))))
    assert len(result.violations) == count
    assert ("admitted-first" in result.exceptions) is (count == 0)


@pytest.mark.parametrize(("finished", "seconds", "count"), [(3, 30, 0), (3, 40, 1), (20, 30, 1)])
@pytest.mark.parametrize("is_first", [True, False], ids=["reported before", "reported later"])
def test_a_restarted_kubelet_may_count_a_pod_whose_end_was_not_reported(
    finished: int, seconds: int, count: int, *, is_first: bool
) -> None:
    ended = pod("ended", node="n1", phase="Succeeded")
    status = ended.status.containerStatuses.add(name="c")
    status.state.terminated.finishedAt.seconds = int(BEGIN) + finished
    history = History().put(node("n1"), pod("ended"), pod("p"), pod("ended", node="n1", allocated="1"))
    history.put(pod("p", node="n1", allocated="1"), pod("p", node="n1", allocated="2"))
    ends, others = [ended], [pod("other")] * seconds
    rejected = failed("OutOfcpu")
    history.put(*(ends + others[: seconds - 30] if is_first else []), rejected, *others, *ends, pod("other"))
    assert len(violations_of(LateRejections, history)) == count


def test_each_end_that_was_reported_late_explains_a_rejection() -> None:
    """A restarted kubelet reports the ends that its predecessor could not report all at once."""
    ends = []
    for name, finished in (("early", 3), ("late", 8)):
        ended = pod(name, node="n1", phase="Succeeded")
        status = ended.status.containerStatuses.add(name="c")
        status.state.terminated.finishedAt.seconds = int(BEGIN) + finished
        ends.append(ended)
    running = [pod(each.metadata.name, node="n1", allocated="1") for each in ends]
    history = History().put(node("n1"), *running, pod("p"), pod("p", node="n1", allocated="1"))
    history.put(pod("p", node="n1", allocated="2"), *[pod("other")] * 4, *ends, failed("OutOfcpu"))
    assert violations_of(LateRejections, history) == []


@pytest.mark.parametrize(("ahead", "count"), [(61, 0), (0, 1)])
def test_an_end_in_the_future_is_by_a_clock_that_is_ahead(ahead: int, count: int) -> None:
    ended, renewed = pod("ended", node="n1", phase="Succeeded"), lease("n1")
    status = ended.status.containerStatuses.add(name="c")
    status.state.terminated.finishedAt.seconds = int(BEGIN) + 3 + 61
    history = History().put(node("n1"), pod("ended", node="n1", allocated="1"), pod("p"))
    history.put(pod("p", node="n1", allocated="1"), pod("p", node="n1", allocated="2"))
    renewed.spec.renewTime.seconds = int(history.now) + 1 + ahead
    history.put(renewed, ended, failed("OutOfcpu"))
    assert len(violations_of(LateRejections, history)) == count
