"""The kubelet's metrics, under upstream's names (kubelet 1.36), summed over the nodes of the process."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from nominee.kubelet.allocation.admission import UNEXPECTED
from nominee.kubelet.instructions import Actuated, Evaluated, ResizeRequested
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.node.sysctls import FORBIDDEN
from nominee.kubelet.resize import conditions
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.kubelet.runtime.terminations import termination_reason, terminations

NODES = Gauge("nominee_kubelet_nodes", "Nodes that this process carries.")
RUNNING_PODS = Gauge("kubelet_running_pods", "Pods that have a running pod sandbox.")
REJECTIONS = Counter("kubelet_admission_rejections", "Pod admission rejections.", ["reason"])
REQUESTED_RESIZES = Counter(
    "kubelet_container_requested_resizes",
    "Number of requested resizes, counted at the container level. Different resources on the same container"
    " are counted separately. The 'requirement' label refers to 'memory' or 'limits'; the 'operation' label"
    " can be one of 'add', 'remove', 'increase' or 'decrease'.",
    ["resource", "requirement", "operation"],
)
RESIZE_DURATION = Histogram(
    "kubelet_pod_resize_duration_milliseconds",
    "Duration in milliseconds to actuate a pod resize",
    ["success"],
    buckets=[10.0 * 2**power for power in range(14)],
)
PENDING_RESIZES = Gauge("kubelet_pod_pending_resizes", "Number of pending resizes for pods.", ["reason"])
IN_PROGRESS_RESIZES = Gauge("kubelet_pod_in_progress_resizes", "Number of in-progress resizes for pods.")
INFEASIBLE_RESIZES = Counter(
    "kubelet_pod_infeasible_resizes", "Number of infeasible resizes for pods.", ["reason_detail"]
)
DEFERRED_ACCEPTED_RESIZES = Counter(
    "kubelet_pod_deferred_accepted_resizes",
    "Cumulative number of resizes that were accepted after being deferred.",
    ["retry_trigger"],
)
PREEMPTIONS = Counter(
    "kubelet_preemptions",
    "Cumulative number of pod preemptions by preemption resource",
    ["preemption_signal"],
)
"""Kubelet 1.36 has no `_total` in this name; later ones have both names."""
TERMINATED_CONTAINERS = Counter(
    "kubelet_terminated_containers",
    "[ALPHA] Cumulative number of container terminations.",
    ["container_type", "exit_code", "reason"],
)

_REJECTION_REASONS = frozenset(
    (
        "PodOSSelectorNodeLabelDoesNotMatch",
        "PodOSNotSupported",
        UNEXPECTED,
        "OutOfcpu",
        "OutOfmemory",
        "OutOfephemeral-storage",
        "OutOfpods",
        FORBIDDEN,
    )
)
"""Of those that this kubelet has, the reasons that are a label of kubelet_admission_rejections_total."""


def rejection_label(reason: str) -> str:
    """Return the label of a rejection; reasons that are unlimited in number share one.

    Source: kubelet 1.36, recordAdmissionRejection.
    """
    if reason in _REJECTION_REASONS:
        return reason
    return "OutOfExtendedResources" if reason.startswith("OutOf") else "Other"


def count(evaluated: Evaluated) -> None:
    """Count one admission, and the pods that were preempted for it."""
    if evaluated.preempted:
        PREEMPTIONS.labels(evaluated.signal).inc(evaluated.preempted)
    if evaluated.operation == "add":
        if not evaluated.admitted:
            REJECTIONS.labels(rejection_label(evaluated.reason)).inc()
    elif evaluated.admitted and evaluated.was_deferred:
        DEFERRED_ACCEPTED_RESIZES.labels(evaluated.trigger).inc()
    elif evaluated.reason == conditions.INFEASIBLE:
        INFEASIBLE_RESIZES.labels(evaluated.detail).inc()


def count_request(requested: ResizeRequested) -> None:
    """Count a change of a container's requests or limits."""
    REQUESTED_RESIZES.labels(requested.resource, requested.requirement, requested.operation).inc()


def count_terminations(old: PodSandbox, new: PodSandbox) -> None:
    """Count the runs of containers that ended between two states of a pod."""
    for container_type, exit_code in terminations(old, new):
        TERMINATED_CONTAINERS.labels(container_type, str(exit_code), termination_reason(exit_code)).inc()


def observe(actuated: Actuated) -> None:
    """Observe the duration of an actuation."""
    RESIZE_DURATION.labels(str(actuated.success).lower()).observe(actuated.seconds * 1000.0)


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
