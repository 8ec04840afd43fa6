"""The predicates of an admission: resources, node affinity, node name, host ports, NoExecute taints. Pure.

Source: kubelet 1.36, predicate admit handler, over the scheduler's AdmissionCheck: all failures are found, in
this order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nominee.kubelet.allocation.preemption import Shortage
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pods.record import PodRecord
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import (
    Resources,
    is_extended,
    is_extended_or_device_class,
    is_sidecar,
)
from nominee.machinery.scheduling import node_affinity, taints
from nominee.machinery.scheduling.priority import is_static

_RESOURCE_REASONS = {
    "cpu": "OutOfcpu",
    "memory": "OutOfmemory",
    "ephemeral-storage": "OutOfephemeral-storage",
    "pods": "OutOfpods",
}
_FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage")
NODE_AFFINITY = "NodeAffinity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A predicate that a pod fails."""

    reason: str
    """What status and events show: OutOfcpu, NodeAffinity."""
    description: str
    message: str
    shortage: Shortage | None = None
    """What is missing; None where preemption cannot help."""


def failures(node: NodeState, pod: core.Pod, requests: Resources, others: list[PodRecord]) -> list[Failure]:
    """Return the predicates that the pod fails with these requests beside these others."""
    failed = list(_shortages(node, requests, others))
    if not matches_affinity(node, pod):
        failed.append(_predicate(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector"))
    if pod.spec.nodeName and pod.spec.nodeName != node.node.metadata.name:
        failed.append(_predicate("NodeName", "node(s) didn't match the requested node name"))
    if _ports_taken(pod, others):
        failed.append(_predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports"))
    if not is_static(pod) and not _tolerates(node, pod):
        failed.append(_predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate"))
    return failed


def insufficient(resource: str, *, asked: int, used: int, capacity: int) -> Failure:
    """Return the failure for a resource of which the node has too little (millicores, bytes, ...)."""
    return Failure(
        reason=_RESOURCE_REASONS.get(resource, f"OutOf{resource}"),
        description=f"Insufficient {resource}",
        message=(
            f"Node didn't have enough resource: {resource}, "
            f"requested: {asked}, used: {used}, capacity: {capacity}"
        ),
        shortage=Shortage(resource, asked - (capacity - used)),
    )


def _predicate(name: str, description: str) -> Failure:
    return Failure(reason=name, description=description, message=f"Predicate {name} failed: {description}")


def _shortages(node: NodeState, requests: Resources, others: list[PodRecord]) -> Iterator[Failure]:
    pods_max = node.allocatable("pods")
    if len(others) + 1 > pods_max:
        yield insufficient("pods", asked=1, used=len(others), capacity=pods_max)
    scalar = [name for name in requests if name not in _FIRST_RESOURCES]
    for name in (*_FIRST_RESOURCES, *scalar):
        asked = requests.get(name, 0)
        if asked == 0:
            continue
        if is_extended(name) and name not in node.node.status.allocatable:
            continue  # a resource of the cluster, which the node does not know
        if node.features.extended_resources_of_devices and _is_of_devices(node, name):
            continue
        used = sum(node.usage(other).get(name, 0) for other in others)
        capacity = node.allocatable(name)
        if asked > capacity - used:
            yield insufficient(name, asked=asked, used=used, capacity=capacity)


def _is_of_devices(node: NodeState, resource: str) -> bool:
    """Return whether the scheduler provides the resource by devices, since no device plugin has it."""
    return is_extended_or_device_class(resource) and node.allocatable(resource) <= 0


def matches_affinity(node: NodeState, pod: core.Pod) -> bool:
    """Return whether the node has the labels (and the name) that the pod requires."""
    spec = pod.spec
    if not spec.nodeSelector and not spec.HasField("affinity"):
        return True
    return node_affinity.matches(pod, node.node)


def _tolerates(node: NodeState, pod: core.Pod) -> bool:
    untolerated = taints.find_untolerated(
        node.node.spec.taints,
        pod.spec.tolerations,
        effects=(taints.NO_EXECUTE,),
        comparison=node.features.toleration_comparison,
    )
    return untolerated is None


def _host_ports(pod: core.Pod) -> Iterator[tuple[str, str, int]]:
    """Return address, protocol and number of the host ports of containers and sidecars.

    Other init containers hold theirs only while they run.
    """
    sidecars = [container for container in pod.spec.initContainers if is_sidecar(container)]
    for container in (*sidecars, *pod.spec.containers):
        for port in container.ports:
            if port.hostPort:
                yield port.hostIP or "0.0.0.0", port.protocol or "TCP", port.hostPort


def _ports_taken(pod: core.Pod, others: list[PodRecord]) -> bool:
    ports = list(_host_ports(pod))
    if not ports:
        return False
    taken = [port for other in others for port in _host_ports(other.pod)]
    return any(
        protocol == other_protocol
        and number == other_number
        and (address == other_address or "0.0.0.0" in (address, other_address))
        for address, protocol, number in ports
        for other_address, other_protocol, other_number in taken
    )
