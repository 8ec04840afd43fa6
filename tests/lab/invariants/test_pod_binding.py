"""A pod is bound once, to one node, and runs on no other."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import CheckpointedPod, Evidence
from nominee.lab.history.invariants.pod_rules.pod_binding import PodBinding
from tests.lab.invariants.histories import History, event, node, pod, result_of, violations_of

UNBOUND, BOUND = pod("p"), pod("p", node="n1")


VIOLATED = {
    "bound to another node": (
        History().put(UNBOUND, BOUND, pod("p", node="n2")),
        "bound to node 'n1' and is now bound to node 'n2'",
        (2, 3),
    ),
    "unbound": (History().put(BOUND, UNBOUND), "bound to node 'n1' and is now bound to no node", (1, 2)),
    "two Scheduled events": (
        History().put(BOUND, event("p.1", "Scheduled", BOUND), event("p.2", "Scheduled", BOUND)),
        "bound the pod twice",
        (1, 2, 3),
    ),
    "a repeated Scheduled event": (
        History().put(BOUND, event("p.1", "Scheduled", BOUND), event("p.1", "Scheduled", BOUND, count=2)),
        "bound the pod twice",
        (1, 2, 3),
    ),
    "another node reports it": (
        History().put(node("n1", ip="172.16.0.1"), node("n2", ip="172.16.0.2"), BOUND)
        .put(pod("p", node="n1", host_ip="172.16.0.2")),
        "node 'n2' (172.16.0.2) reports the pod, which is bound to node 'n1'",
        (4,),
    ),
    "a node reports an unbound pod": (
        History().put(node("n1", ip="172.16.0.1"), pod("p", host_ip="172.16.0.1")),
        "node 'n1' (172.16.0.1) reports the pod, which is not bound",
        (2,),
    ),
}  # fmt: skip

HELD = {
    "bound once": History().put(UNBOUND, BOUND, pod("p", node="n1", phase="Running")),
    "another pod of the name on another node": (
        History().put(BOUND, event("p.1", "Scheduled", BOUND)).delete(BOUND)
        .put(pod("p", uid="uid-2", node="n2"), event("p.2", "Scheduled", pod("p", uid="uid-2")))
    ),
    "created with its node": History().put(pod("p", node="n2")),
    "replaced unseen in a gap": History().put(BOUND).state(pod("p", uid="uid-2", node="n2")),
    "another event twice": (
        History().put(BOUND, event("p.1", "Pulled", BOUND), event("p.2", "Pulled", BOUND))
    ),
    "the event is written once more": (
        History().put(BOUND, event("p.1", "Scheduled", BOUND), event("p.1", "Scheduled", BOUND, count=1))
    ),
    "its own node reports it": (
        History().put(node("n1", ip="172.16.0.1"), BOUND, pod("p", node="n1", host_ip="172.16.0.1"))
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", VIOLATED)
def test_violations(case: str) -> None:
    history, message, revisions = VIOLATED[case]
    (violation,) = violations_of(PodBinding, history)
    assert message in violation.message
    assert violation.revisions == revisions
    assert "Pod default/p" in violation.objects


@pytest.mark.parametrize("case", HELD)
def test_histories_without_violation(case: str) -> None:
    assert violations_of(PodBinding, HELD[case]) == []


def test_a_pod_in_two_checkpoints_runs_on_two_nodes() -> None:
    history = History().put(BOUND)
    runs, ended = CheckpointedPod(running=True), CheckpointedPod(running=False)

    def found(**checkpoints: CheckpointedPod) -> list[str]:
        by_node = {name: {"uid-p": one} for name, one in checkpoints.items()}
        evidence = Evidence(now=history.now, checkpoints=by_node)
        return [violation.message for violation in violations_of(PodBinding, history, evidence=evidence)]

    assert found(n1=runs, n2=runs) == ["containers of the pod run on n1, n2; it is bound to n1"]
    assert found(n2=runs) == ["containers of the pod run on n2; it is bound to n1"]
    assert found(n1=runs, n2=ended) == []
    assert found(n1=runs) == []


def test_the_address_of_a_deleted_node_is_an_exception() -> None:
    gone = node("n1", ip="172.16.0.1")
    history = History().put(gone, BOUND).delete(gone).put(pod("p", node="n1", host_ip="172.16.0.1"))
    result = result_of(PodBinding, history)
    assert result.violations == ()
    assert result.exceptions == {"node-unknown": 1}
