"""No node is deleted while a pod is being bound to it."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.scaling.node_deletion import NodeDeletion
from tests.lab.invariants.histories import History, node, pod, result_of, violations_of

FIXED = ComponentSettings(protects_nominated_nodes=True)
NODE, TAINTED = node("n1"), node("n1", taints=["ToBeDeletedByClusterAutoscaler"])
NOMINATED, BOUND = pod("p", nominated="n1"), pod("p", node="n1")

HELD = {
    "no pod": History().put(NODE, TAINTED).delete(NODE),
    "the pod is bound": History().put(NODE, NOMINATED, BOUND, TAINTED).delete(NODE),
    "nominated to another node": History().put(NODE, pod("p", nominated="n2"), TAINTED).delete(NODE),
    "the nomination is cleared": History().put(NODE, NOMINATED, TAINTED, pod("p")).delete(NODE),
    "the pod is deleted": History().put(NODE, NOMINATED, TAINTED).delete(NOMINATED).delete(NODE),
    "the pod is terminating": (
        History().put(NODE, NOMINATED, TAINTED, pod("p", nominated="n1", deletes_at=1e9)).delete(NODE)
    ),
    "not by the autoscaler": History().put(NODE, NOMINATED).delete(NODE),
    "the autoscaler gave up": History().put(NODE, NOMINATED, TAINTED, NODE).delete(NODE),
}


def test_a_node_with_a_nominated_pod() -> None:
    history = History().put(NODE, NOMINATED, pod("p", nominated="n1", phase="Pending"), TAINTED).delete(NODE)
    (violation,) = violations_of(NodeDeletion, history, FIXED)
    assert violation.message == "the autoscaler deleted the node while a pod was nominated to it"
    assert violation.revisions == (2, 4, 5)
    assert violation.objects == ("Pod default/p", "Node n1")
    result = result_of(NodeDeletion, history)
    assert (result.violations, result.counts) == ((), {"nominated": 1})


@pytest.mark.parametrize("case", HELD)
def test_histories_without_violation(case: str) -> None:
    result = result_of(NodeDeletion, HELD[case], FIXED)
    assert (result.violations, result.exceptions) == ((), {})


def test_a_nomination_after_the_taint_is_an_exception() -> None:
    history = History().put(NODE, TAINTED, NOMINATED).delete(NODE)
    result = result_of(NodeDeletion, history, FIXED)
    assert (result.violations, result.exceptions) == ((), {"nominated-after-taint": 1})


def test_a_pod_that_is_bound_to_a_deleted_node_is_counted() -> None:
    history = History().put(NODE, pod("p"), TAINTED).delete(NODE).put(BOUND)
    assert result_of(NodeDeletion, history, FIXED).counts == {"bound-after": 1}
    again = History().put(NODE, pod("p"), TAINTED).delete(NODE).put(NODE, BOUND)
    assert result_of(NodeDeletion, again, FIXED).counts == {}


def test_a_tainted_node_that_another_client_deletes() -> None:
    history = History().put(NODE, NOMINATED, TAINTED).delete(NODE)
    result = result_of(NodeDeletion, history, FIXED, Evidence(now=history.now, scaled_down={}))
    assert (result.violations, result.exceptions) == ((), {"deleted-by-others": 1})
    asked = Evidence(now=history.now, scaled_down={"n1": [3]})
    assert violations_of(NodeDeletion, history, FIXED, asked)
