"""Pods: the row of their kind, its columns and selectable fields (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.apiserver.kinds.core.pods.ephemeral_containers import PodEphemeralContainersStrategy
from nominee.apiserver.kinds.core.pods.resize import PodResizeStrategy
from nominee.apiserver.kinds.core.pods.strategy import PodStatusStrategy, PodStrategy
from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.objects.selectable_fields import bool_text, selectable
from nominee.apiserver.printing.cells import NONE
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns, Conditions, wide
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.printing.pods import has_true_condition, pod_summary
from nominee.machinery.wire import presence

_FINISHED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def _fields(pod: core.Pod) -> dict[str, str]:
    spec, status = pod.spec, pod.status
    host_network = spec.hostNetwork or (
        spec.HasField("securityContext") and getattr(spec.securityContext, "hostNetwork", False)
    )
    return {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "spec.nodeName": spec.nodeName,
        "spec.restartPolicy": spec.restartPolicy,
        "spec.schedulerName": spec.schedulerName,
        "spec.serviceAccountName": spec.serviceAccountName,
        "spec.hostNetwork": bool_text(host_network),
        "status.phase": status.phase,
        "status.podIP": status.podIP,
        # Upstream selects on the first address only, and the plural is a label that never has a value.
        "status.podIPs": "",
        "status.nominatedNodeName": status.nominatedNodeName,
    }


def _row(pod: core.Pod, now: float) -> Cells:
    spec, status = pod.spec, pod.status
    summary = pod_summary(pod)
    return [
        f"{summary.ready}/{summary.total}",
        summary.status,
        summary.restarts.text(now),
        (status.podIPs[0].ip if status.podIPs else "") or NONE,
        spec.nodeName or NONE,
        status.nominatedNodeName or NONE,
        _gates(pod),
    ]


def _conditions(pod: core.Pod) -> Conditions:
    phase = pod.status.phase
    if phase not in _FINISHED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _FINISHED[phase]}]


def _gates(pod: core.Pod) -> str:
    gates = [gate.conditionType for gate in pod.spec.readinessGates]
    if not gates:
        return NONE
    return f"{sum(has_true_condition(pod, gate) for gate in gates)}/{len(gates)}"


RULES = KindRules(
    kind=kinds.POD,
    strategy=PodStrategy(
        kinds.POD,
        {
            "status": PodStatusStrategy(kinds.POD),
            "resize": PodResizeStrategy(kinds.POD),
            "ephemeralcontainers": PodEphemeralContainersStrategy(kinds.POD),
        },
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
        Column("Status", "The aggregate status of the containers in this pod."),
        Column(
            "Restarts",
            "The number of times the containers in this pod have been restarted and when the last"
            " container in this pod has restarted.",
        ),
        AGE,
        wide("IP", "podstatus-v1#podIP"),
        wide("Node", "podspec-v1#nodeName"),
        wide("Nominated Node", "podstatus-v1#nominatedNodeName"),
        wide("Readiness Gates", "podspec-v1#readinessGates"),
        conditions=_conditions,
    ),
    # `spec.host` was v1beta1's name of spec.nodeName and is still accepted.
    fields=selectable(core.Pod, _fields, aliases={"spec.host": "spec.nodeName"}),
    delete_response=DeleteResponse.OBJECT,
    fill=presence.fill_pod,
)
