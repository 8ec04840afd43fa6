"""The kubelet's metrics, under upstream's names (kubelet 1.36), summed over the nodes of the process."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Counter, Gauge

from kubelet.instructions import Evaluated
from kubelet.node.state import NodeState
from kubelet.resize import conditions

NODES = Gauge("nominee_kubelet_nodes", "Nodes that this process carries.")
RUNNING_PODS = Gauge("kubelet_running_pods", "Pods that have a running pod sandbox.")
REJECTIONS = Counter("kubelet_admission_rejections", "Pod admission rejections.", ["reason"])
PENDING_RESIZES = Gauge("kubelet_pod_pending_resizes", "Pods with pending resizes.", ["reason"])
IN_PROGRESS_RESIZES = Gauge("kubelet_pod_in_progress_resizes", "Pods whose resize is in progress.")
INFEASIBLE_RESIZES = Counter("kubelet_pod_infeasible_resizes", "Infeasible resizes.", ["reason_detail"])
DEFERRED_ACCEPTED_RESIZES = Counter(
    "kubelet_pod_deferred_accepted_resizes", "Resizes that were accepted after a deferral.", ["retry_trigger"]
)
_DETAILS = (
    ("CPU Manager", "guaranteed_pod_cpu_manager_static_policy"),
    ("Memory Manager", "guaranteed_pod_memory_manager_static_policy"),
    ("swap", "swap_limitation"),
    ("enough capacity", "insufficient_node_allocatable"),
)


def count(evaluated: Evaluated) -> None:
    """Count one admission."""
    if evaluated.operation == "add":
        if not evaluated.admitted:
            REJECTIONS.labels(evaluated.reason).inc()
    elif evaluated.admitted and evaluated.was_deferred:
        DEFERRED_ACCEPTED_RESIZES.labels(evaluated.trigger).inc()
    elif evaluated.reason == conditions.INFEASIBLE:
        detail = next((name for text, name in _DETAILS if text in evaluated.message), "feature_gate_off")
        INFEASIBLE_RESIZES.labels(detail).inc()


def measure(nodes: Iterable[NodeState], running: int) -> None:
    """Set the gauges."""
    pending = {conditions.DEFERRED: 0, conditions.INFEASIBLE: 0}
    in_progress = 0
    for node in nodes:
        for record in node.pods.values():
            if record.pending is not None:
                pending[record.pending.reason] = pending.get(record.pending.reason, 0) + 1
            in_progress += record.in_progress is not None
    for reason, number in pending.items():
        PENDING_RESIZES.labels(reason.lower()).set(number)
    IN_PROGRESS_RESIZES.set(in_progress)
    RUNNING_PODS.set(running)
