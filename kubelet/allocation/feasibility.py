"""Resizes that this node can never do, however much room there is.

Source: kubelet 1.36, pod resize admit handler (KEP-1287, "Resize status": Infeasible).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resize.actuation import restarts_for
from nominee.kubelet.resources.pod_resources import resizable_containers, with_resources
from nominee.machinery.resources import quantity
from nominee.machinery.resources.pod_resources import CPU, MEMORY
from nominee.machinery.resources.qos import GUARANTEED, recorded_qos_class
from nominee.machinery.scheduling.priority import is_static


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason for which a resize is infeasible; `detail` is the label of its metric."""

    message: str
    detail: str


SWAP: Final = Refusal("In-place resize of containers with swap is not supported.", "swap_limitation")
GATE_OFF: Final = Refusal("InPlacePodVerticalScaling is disabled", "feature_gate_off")
STATIC_POD: Final = Refusal("In-place resize of static-pods is not supported", "static_pod")
STATIC_CPU: Final = Refusal(
    'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
    "guaranteed_pod_cpu_manager_static_policy",
)
STATIC_MEMORY: Final = Refusal(
    'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
    "guaranteed_pod_memory_manager_static_policy",
)


def infeasible(node: NodeState, record: PodRecord) -> Refusal | None:
    """Return why the pod's pending resize can never be done on this node, or None."""
    if not node.features.resize:
        return GATE_OFF
    if is_static(record.pod):
        return STATIC_POD
    if _changes_swapping_memory(node, record):
        return SWAP
    return _pinned(node, record) or _above_allocatable(node, record)


def _pinned(node: NodeState, record: PodRecord) -> Refusal | None:
    """Return why exclusive cpus and NUMA memory of a Guaranteed pod stay as they are, or None."""
    if recorded_qos_class(record.pod) != GUARANTEED:
        return None
    settings = node.settings
    pins_cpu = settings.cpu_manager_policy == "static" and not settings.resizes_exclusive_cpus
    if pins_cpu and _changes_request(node, record, CPU):
        return STATIC_CPU
    pins_memory = settings.memory_manager_policy == "Static" and not settings.resizes_exclusive_memory
    if pins_memory and _changes_request(node, record, MEMORY):
        return STATIC_MEMORY
    return None


def _above_allocatable(node: NodeState, record: PodRecord) -> Refusal | None:
    """Return why a request beyond the whole node is infeasible: before 1.36; since then it is deferred."""
    if not node.features.infeasible_above_allocatable:
        return None
    requests = node.requests(record, record.desired)
    for name in (MEMORY, CPU):
        asked, capacity = requests.get(name, 0), node.allocatable(name)
        if asked > capacity:
            message = f"Node didn't have enough capacity: {name}, requested: {asked}, capacity: {capacity}"
            return Refusal(message, "insufficient_node_allocatable")
    return None


def _request_changes(node: NodeState, record: PodRecord, container: str, resource: str) -> bool:
    old = node.allocated(record).of(container).requests.get(resource) or "0"
    new = record.desired.of(container).requests.get(resource) or "0"
    return old != new and quantity.Quantity.parse(old) != quantity.Quantity.parse(new)


def _changes_swapping_memory(node: NodeState, record: PodRecord) -> bool:
    """Return whether a memory request changes without a restart in a container that may swap.

    It may swap with what it has or with what it asks for. Limits do not matter.
    """
    allocated = with_resources(record.pod, node.allocated(record), pod_level=node.features.resize_pod_level)
    for container in (*record.pod.spec.containers, *record.pod.spec.initContainers):
        if not _request_changes(node, record, container.name, MEMORY) or restarts_for(container, MEMORY):
            continue
        if any(node.settings.uses_swap(pod, container.name) for pod in (record.pod, allocated)):
            return True
    return False


def _changes_request(node: NodeState, record: PodRecord, resource: str) -> bool:
    containers = resizable_containers(record.pod.spec, init_containers=node.features.resize_init_containers)
    return any(_request_changes(node, record, container.name, resource) for container, _ in containers)
