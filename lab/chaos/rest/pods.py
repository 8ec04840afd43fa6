"""Pods that failed without a reason outside of the cluster, and addresses that two objects have. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.message import Message

from nominee.lab.chaos.cases.rest import foreign_finalizers
from nominee.lab.chaos.rest.state import Finding, State, name_of
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS
from nominee.lab.history.invariants.pod_rules.late_rejections import OUT_OF, PREEMPTED
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import condition_is, has_ended, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.scheduling.taints import OUT_OF_SERVICE, find_taint

_OWN_REASONS: Final = frozenset({"DeadlineExceeded", "Evicted"})
"""Reasons of the pod's own: its deadline, its use of the node."""


def failures(state: State) -> Iterator[Finding]:
    """Find pods that are Failed though no container of theirs failed and nothing disrupted them.

    The scheduler binds a pod to a node that has room for it and admits it, so its kubelet rejects none; but
    one that restarts while a pod that it has preempted ends counts this pod (kubernetes/kubernetes#141210).
    """
    expected = state.expectations
    preempting = {pod.spec.nodeName for pod in state.of(kinds.POD) if pod.status.reason == PREEMPTED}
    for pod in state.of(kinds.POD):
        is_counted = pod.spec.nodeName in preempting and pod.status.reason.startswith(OUT_OF)
        is_expected = is_counted or expected.is_race(pod) or expected.rejects(pod)
        is_failed = pod.status.phase == "Failed" and pod.spec.nodeName and not _is_own_failure(pod)
        if is_failed and not is_expected:
            why = f"with the reason {pod.status.reason}" if pod.status.reason else "without a reason"
            yield Finding(name_of(pod), f"was failed on {pod.spec.nodeName} {why}")


def orphans(state: State) -> Iterator[Finding]:
    """Find pods that no kubelet ends, which the pod garbage collector fails and removes.

    Those bound to a node that does not exist, and those that terminate without a node, or on one that is out
    of service. One that a finalizer of another client keeps is failed, too (kube-controller-manager 1.36,
    gc_controller.go, markFailedAndDeletePod).
    """
    if CONTROLLERS not in state.running:
        return
    out_of_service = {node.metadata.name for node in state.of(kinds.NODE) if _is_out_of_service(node)}
    for pod in state.of(kinds.POD):
        node = pod.spec.nodeName
        is_lost = bool(node) and node not in state.node_names
        is_held = is_terminating(pod) and foreign_finalizers(pod)
        if is_lost and not is_held:
            yield Finding(name_of(pod), f"is bound to {node}, which does not exist")
        elif is_terminating(pod) and not has_ended(pod) and (is_lost or not node or node in out_of_service):
            yield Finding(name_of(pod), "terminates, no kubelet ends it, and it is not Failed")


def _is_out_of_service(node: core.Node) -> bool:
    is_tainted = find_taint(node.spec.taints, OUT_OF_SERVICE) is not None
    return is_tainted and not condition_is(node.status.conditions, "Ready")


def addresses(state: State) -> Iterator[Finding]:
    """Find addresses of pods and services, node ports and ranges of nodes that two objects have.

    Pods on the network of their host have its address, and headless services have none.
    """
    holders: dict[str, str] = {}
    for obj, address in _addresses(state):
        if address and address != "None" and holders.setdefault(address, name_of(obj)) != name_of(obj):
            yield Finding(name_of(obj), f"has the address {address}, and so has {holders[address]}")


def _addresses(state: State) -> Iterator[tuple[Message, str]]:
    """Yield each object with each of its addresses."""
    for pod in state.of(kinds.POD):
        if not pod.spec.hostNetwork and not has_ended(pod):
            yield pod, pod.status.podIP
    for service in state.of(kinds.SERVICE):
        yield from ((service, address) for address in service.spec.clusterIPs)
        yield from (
            (service, f"{port.nodePort}/{port.protocol}") for port in service.spec.ports if port.nodePort
        )
    for node in state.of(kinds.NODE):
        yield from ((node, address) for address in node.spec.podCIDRs)


def _is_own_failure(pod: core.Pod) -> bool:
    statuses = (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    return (
        pod.status.reason in _OWN_REASONS
        or (not pod.status.reason and any(each.state.terminated.exitCode for each in statuses))
        or condition_is(pod.status.conditions, "DisruptionTarget")
    )
