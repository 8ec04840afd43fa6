"""The autoscaler drains a node before it deletes it."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence, ScaleDown
from nominee.lab.history.invariants.scaling.node_draining import NodeDraining
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import BEGIN, History, node, pod, result_of, violations_of

TAINTED = node("n1", taints=["ToBeDeletedByClusterAutoscaler"])
SECONDS = [node("n2")] * 12


def running(*, owner: str = "", mirror: bool = False, deletes_at: float = 0.0, phase: str = "") -> core.Pod:
    """Return a pod on the node."""
    found = pod("p", node="n1", phase=phase or "Running", deletes_at=deletes_at)
    if owner:
        found.metadata.ownerReferences.add(kind=owner, name="o", uid="uid-o", controller=True)
    if mirror:
        found.metadata.annotations["kubernetes.io/config.mirror"] = "x"
    return found


def deletion(found: core.Pod, *then: core.Pod) -> History:
    """Return a history in which the autoscaler deletes the pod's node."""
    return History().put(node("n1"), found, *SECONDS, TAINTED, *then).delete(TAINTED)


def test_a_pod_that_is_not_evicted() -> None:
    (violation,) = violations_of(NodeDraining, deletion(running(owner="ReplicaSet")))
    assert violation.message == (
        "the autoscaler deleted the node while Pod default/p ran there, and did not evict it"
    )
    assert violation.objects == ("Pod default/p", "Node n1")
    assert violation.revisions == (2, 15, 16)


@pytest.mark.parametrize(
    "history",
    [
        deletion(running(owner="DaemonSet")),
        deletion(running(mirror=True)),
        deletion(running(phase="Succeeded")),
        deletion(running(), running(deletes_at=BEGIN + 1000)),
        History().put(node("n1"), running(), *SECONDS, TAINTED).delete(running()).delete(TAINTED),
        History().put(node("n1"), running(), *SECONDS).delete(node("n1")),
        History().put(node("n1"), running(), *SECONDS, TAINTED, node("n1")).delete(node("n1")),
    ],
    ids=[
        "daemon",
        "mirror",
        "succeeded",
        "evicted",
        "gone",
        "not by the autoscaler",
        "the taint was taken back",
    ],
)
def test_drained_nodes(history: History) -> None:
    result = result_of(NodeDraining, history)
    assert result.violations == ()
    assert result.exceptions == {}


def test_a_pod_that_was_bound_late_is_an_exception() -> None:
    result = result_of(NodeDraining, History().put(node("n1"), TAINTED, running()).delete(TAINTED))
    assert result.violations == ()
    assert result.exceptions == {"bound-late": 1}


def prioritized(priority: int) -> core.Pod:
    """Return a running pod of a priority."""
    found = running()
    found.spec.priority = priority
    return found


def test_expendable_pods_are_not_evicted() -> None:
    options = ScaleDown(unneeded_seconds=1, scan_seconds=1, threshold=0.5, expendable_below=-20)
    other = ComponentSettings(scale_down=options)
    assert violations_of(NodeDraining, deletion(prioritized(-11))) == []
    assert violations_of(NodeDraining, deletion(prioritized(-11)), other)
    assert violations_of(NodeDraining, deletion(prioritized(-10)))


def test_a_pod_may_say_that_it_is_one_of_a_daemon_set() -> None:
    daemon = running()
    daemon.metadata.annotations["cluster-autoscaler.kubernetes.io/daemonset-pod"] = "true"
    assert violations_of(NodeDraining, deletion(daemon)) == []


@pytest.mark.parametrize(
    ("asked", "is_drained"),
    [({}, False), ({"n1": [14]}, False), ({"n1": [15]}, True), ({"n1": [16]}, False), (None, True)],
    ids=["never", "before the taint", "with the taint", "after the deletion", "unknown"],
)
def test_a_tainted_node_that_another_client_deletes(
    asked: dict[str, list[int]] | None, is_drained: bool
) -> None:
    history = deletion(running(owner="ReplicaSet"))
    result = result_of(NodeDraining, history, evidence=Evidence(now=history.now, scaled_down=asked))
    assert bool(result.violations) is is_drained
    assert result.exceptions == ({} if is_drained else {"deleted-by-others": 1})
