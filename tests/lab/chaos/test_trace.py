"""The trace of a history, and its features."""

from __future__ import annotations

from nominee.lab.chaos.cases.trace import TracedWrite, pass_features, signature
from nominee.lab.chaos.tracing import trace
from nominee.machinery.api.pb import coordination
from tests.lab.invariants.histories import History, node, pod


def lease(holder: str, renewed: int) -> coordination.Lease:
    found = coordination.Lease()
    found.metadata.name, found.metadata.namespace = "kube-scheduler", "kube-system"
    found.spec.holderIdentity = holder
    found.spec.renewTime.seconds = renewed
    return found


def test_a_trace_has_transitions_and_fields_that_appear_and_go() -> None:
    history = History()
    history.put(pod("p", conditions={"PodScheduled": "Unschedulable"}, nominated="n"))
    history.put(pod("p", node="n", conditions={"PodScheduled": ""}, finalizers=["x"]))
    history.put(pod("p", node="n", conditions={"PodScheduled": ""}, finalizers=["x"], phase="Running"))
    history.delete(pod("p"))
    assert [each.text for each in trace(history.revisions)] == [
        "Pod default/p: created, PodScheduled >True/Unschedulable, phase >Pending",
        "Pod default/p: +metadata.finalizers, +spec.nodeName, PodScheduled True/Unschedulable>True, "
        "-status.nominatedNodeName",
        "Pod default/p: phase Pending>Running",
        "Pod default/p: deleted",
    ]
    assert [each.seconds for each in trace(history.revisions)] == [0.0, 1.0, 2.0, 3.0]


def test_of_leases_only_the_holder_counts() -> None:
    history = History()
    for holder, renewed in (("a", 1), ("a", 2), ("b", 3)):
        history.put(lease(holder, renewed))
    assert [each.changes for each in trace(history.revisions)] == [("created",), ("~spec.holderIdentity",)]


def test_names_are_no_part_of_a_signature_and_the_order_of_writes_is() -> None:
    def bound(*names: str) -> frozenset[str]:
        history = History()
        for name in names:
            history.put(pod(name))
        for name in names:
            history.put(pod(name, node="n"))
        return signature(trace(history.revisions))

    assert bound("a", "b") == bound("c", "d")
    assert bound("a", "b") != bound("a")


def test_the_writes_of_one_object_are_a_feature_whatever_is_between() -> None:
    writes = [
        TracedWrite(0.0, 1, "Pod a", ("created",)),
        TracedWrite(0.0, 2, "Node n", ("created",)),
        TracedWrite(0.0, 3, "Pod a", ("deleted",)),
    ]
    assert "Pod created | Pod deleted" in signature(writes)
    assert "Pod created > Node created" in signature(writes)
    assert not any(feature.startswith("Pod created > Pod") for feature in signature(writes))


def test_nodes_have_writes_too() -> None:
    history = History()
    history.put(node("n"))
    history.put(node("n", taints=["t"]))
    assert [each.text for each in trace(history.revisions)][1] == "Node n: +spec.taints"


def test_a_failpoint_that_a_process_passes_is_a_feature() -> None:
    assert pass_features({"s": {"x": 4, "y": 0}}) == {"s x"}
