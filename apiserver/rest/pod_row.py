"""A pod's row (kube-apiserver 1.36, pkg/printers/internalversion, printPod)."""

from __future__ import annotations

from apiserver.rest.row import NONE, Row, age
from machinery.api.pb import core
from machinery.printing.pods import has_true_condition, pod_summary

_FINISHED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def pod_row(pod: core.Pod, now: float) -> Row:
    """Return the cells of one pod."""
    spec, status = pod.spec, pod.status
    summary = pod_summary(pod)
    conditions = []
    if status.phase in _FINISHED:
        message = _FINISHED[status.phase]
        conditions = [{"type": "Completed", "status": "True", "reason": status.phase, "message": message}]
    address = status.podIPs[0].ip if status.podIPs else ""
    return Row(
        [
            pod.metadata.name,
            f"{summary.ready}/{summary.total}",
            summary.status,
            summary.restarts.text(now),
            age(pod.metadata, now),
            address or NONE,
            spec.nodeName or NONE,
            status.nominatedNodeName or NONE,
            _gates(pod),
        ],
        conditions,
    )


def _gates(pod: core.Pod) -> str:
    gates = [gate.conditionType for gate in pod.spec.readinessGates]
    if not gates:
        return NONE
    return f"{sum(has_true_condition(pod, gate) for gate in gates)}/{len(gates)}"
