"""Admission of a pod, or of a resize: whether it is feasible, has room, or gets room by preemption. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nominee.kubelet.allocation import predicates, preemption
from nominee.kubelet.allocation.feasibility import infeasible
from nominee.kubelet.allocation.preemption import Candidate
from nominee.kubelet.instructions import Operation
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.node.sysctls import FORBIDDEN
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import Resources, amount
from nominee.machinery.resources.qos import recorded_qos_class
from nominee.machinery.scheduling.priority import is_critical

UNEXPECTED = "UnexpectedAdmissionError"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An admission with its victims (uids, in order), or the raw reason and message of a refusal."""

    admitted: bool
    reason: str = ""
    message: str = ""
    detail: str = ""
    """Of an infeasible resize: the label of its metric."""
    victims: tuple[str, ...] = field(default=())
    signal: str = ""
    """Of a preemption: the first resource that was short, the label of its metric."""


def admit(
    node: NodeState, record: PodRecord, resources: PodResources, operation: Operation, others: list[PodRecord]
) -> Verdict:
    """Decide whether `record` may have `resources` beside the active `others`: all of it or nothing."""
    if refusal := _refusal(node, record, operation):
        return refusal
    beside = [other for other in others if other.uid != record.uid]
    failures = predicates.failures(node, record.pod, node.requests(record, resources), beside)
    if not failures:
        return Verdict(admitted=True)
    if operation == "resize" and not node.preempts_for_resize:
        return Verdict(admitted=False, reason=failures[0].reason, message=failures[0].message)
    try:
        recovery = recover(node, record, failures, others)
    except preemption.NoVictimsError as error:
        message = f"Unexpected error while attempting to recover from admission failure: {error}"
        return Verdict(admitted=False, reason=UNEXPECTED, message=message)
    if recovery.failures:
        first = recovery.failures[0]
        return Verdict(admitted=False, reason=first.reason, message=first.message)
    return Verdict(admitted=True, victims=recovery.victims, signal=recovery.signal)


def fails_on_labels_alone(
    node: NodeState, record: PodRecord, resources: PodResources, operation: Operation, others: list[PodRecord]
) -> bool:
    """Return whether the node's labels are the only reason to refuse an admission."""
    if predicates.matches_affinity(node, record.pod) or _refusal(node, record, operation):
        return False
    beside = [other for other in others if other.uid != record.uid]
    failures = predicates.failures(node, record.pod, node.requests(record, resources), beside)
    return all(failure.reason == predicates.NODE_AFFINITY for failure in failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The result of preemption for an admission: victims by uid, in order, and the failures that remain."""

    victims: tuple[str, ...] = ()
    failures: tuple[predicates.Failure, ...] = ()
    signal: str = ""


def recover(
    node: NodeState,
    record: PodRecord,
    failures: Sequence[predicates.Failure],
    active: Sequence[PodRecord],
) -> Recovery:
    """Make room for a critical pod by killing others; failures for another reason than room remain.

    Source: kubelet 1.36, CriticalPodAdmissionHandler; KEP-1287 for resizes. Judge:
    tests/golden/kubelet_preemption.jsonl.

    Raises:
        NoVictimsError: no set of pods would free enough.
    """
    if not is_critical(record.pod):
        return Recovery(failures=tuple(failures))
    remaining = tuple(failure for failure in failures if failure.shortage is None)
    if remaining:
        return Recovery(failures=remaining)
    shortages = [failure.shortage for failure in failures if failure.shortage is not None]
    candidates = [_candidate(node, other) for other in active]
    victims = preemption.choose_victims(_candidate(node, record), candidates, shortages)
    return Recovery(victims=tuple(victim.key for victim in victims), signal=shortages[0].resource)


def _candidate(node: NodeState, record: PodRecord) -> Candidate:
    pod = record.pod
    return Candidate(
        key=record.uid,
        qos=recorded_qos_class(pod),
        priority=pod.spec.priority if pod.spec.HasField("priority") else None,
        critical=is_critical(pod),
        requests=_victim_requests(node, record),
    )


def _victim_requests(node: NodeState, record: PodRecord) -> Resources:
    """Return the requests that killing a pod is taken to free: its allocation, whatever its status says.

    Overhead counts only for a resource that the pod asks for. Source: kubelet 1.36,
    resource.GetResourceRequest.
    """
    requests = node.requests(record, node.allocated(record), overhead=False)
    for name, quantity in record.pod.spec.overhead.items():
        if requests.get(name, 0):
            requests[name] += amount(name, quantity)
    return requests


def _refusal(node: NodeState, record: PodRecord, operation: Operation) -> Verdict | None:
    """Return the refusal for a reason other than the node's room and labels."""
    if operation == "resize" and (refusal := infeasible(node, record)) is not None:
        return Verdict(admitted=False, reason="Infeasible", message=refusal.message, detail=refusal.detail)
    if problem := node.settings.sysctls.problem(record.pod):
        return Verdict(admitted=False, reason=FORBIDDEN, message=problem)
    return _os_failure(node, record.pod)


def _os_failure(node: NodeState, pod: core.Pod) -> Verdict | None:
    """Return the refusal of a pod for another operating system: only Linux is emulated."""
    if pod.metadata.labels.get("kubernetes.io/os", "linux") != "linux":
        return Verdict(
            admitted=False,
            reason="PodOSSelectorNodeLabelDoesNotMatch",
            message="Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    if pod.spec.HasField("os") and pod.spec.os.name != "linux":
        return Verdict(
            admitted=False,
            reason="PodOSNotSupported",
            message="Failed to admit pod as the OS field doesn't match node OS",
        )
    return None
