"""The state of one node in the core: its capacity, its pods and their allocations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nominee.kubelet.features import Features, StatusFeatures, status_features
from nominee.kubelet.node.sysctls import SysctlAllowlist
from nominee.kubelet.options import Delays
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resources.pod_resources import PodResources, desired_resources, with_resources
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import DEFAULT, Gates, Version
from nominee.machinery.resources.pod_resources import Resources, amount, pod_requests


def _no_swap(pod: core.Pod, container: str) -> bool:
    return False


def _no_memory_usage(pod: core.Pod, sandbox: PodSandbox | None, container: str) -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Settings that the node was started with; they do not change while it runs."""

    host_ip: str = ""
    version: Version = DEFAULT
    """The emulated one."""
    delays: Delays = field(default_factory=Delays)
    status: StatusFeatures = field(default_factory=lambda: status_features(DEFAULT, Gates("kubelet")))
    cpu_manager_policy: str = "none"
    memory_manager_policy: str = "None"
    resizes_exclusive_cpus: bool = False
    """InPlacePodVerticalScalingExclusiveCPUs."""
    resizes_exclusive_memory: bool = False
    """InPlacePodVerticalScalingExclusiveMemory."""
    uses_swap: Callable[[core.Pod, str], bool] = _no_swap
    """Whether a container of a pod may swap."""
    memory_usage: Callable[[core.Pod, PodSandbox | None, str], int] = _no_memory_usage
    """How many bytes a container of a pod uses, "" for the pod: a lower limit must leave room for that."""
    sysctls: SysctlAllowlist = field(default_factory=lambda: SysctlAllowlist.of(DEFAULT))


@dataclass(slots=True)
class NodeState:
    """The state of one node. Only `nominee.kubelet.sync_loop` and its callees change it."""

    node: core.Node
    settings: NodeSettings = field(default_factory=NodeSettings)
    features: Features = field(default_factory=Features)
    pods: dict[str, PodRecord] = field(default_factory=dict)
    allocations: dict[str, PodResources] = field(default_factory=dict)
    """By uid: what is checkpointed. Changed by `allocate` and `release` only."""
    version: int = 0
    """Counts the changes of allocations."""
    saved_version: int = 0
    """The newest version that is on disk."""
    queue: list[str] = field(default_factory=list)
    """Uids of pods with a pending resize, in the order of the next retry."""
    sources_ready: bool = False
    transitions: int = 0

    def allocatable(self, resource: str) -> int:
        """Return the node's allocatable amount (millicores, bytes, ...); 0 if the node does not name it."""
        quantities = self.node.status.allocatable
        return amount(resource, quantities[resource].string) if resource in quantities else 0

    @property
    def resize_preemption_disabled(self) -> bool:
        """Return whether the node's policy forbids preemption for a resize: one owner of it is enough.

        Source: KEP-5836, "Multiple Owner Support".
        """
        disabled = bool(self.node.spec.podPreemptionPolicy.disableResizePreemption)
        return self.features.preemption_policy and disabled

    @property
    def preempts_for_resize(self) -> bool:
        """Return whether the kubelet may preempt pods for a critical pod's resize."""
        return self.features.preempts_for_resize and not self.resize_preemption_disabled

    def allocate(self, record: PodRecord, resources: PodResources) -> None:
        """Set a pod's allocation; it is on disk once `saved_version` has reached the record's version."""
        self.allocations[record.uid] = resources
        record.share = None
        self.version += 1
        record.allocation_version = self.version

    def release(self, uid: str) -> None:
        """Remove a pod's allocation."""
        self.allocations.pop(uid, None)
        self.version += 1

    def next_transition(self) -> int:
        self.transitions += 1
        return self.transitions

    def desired_of(self, pod: core.Pod) -> PodResources:
        """Return those of the pod's resources that are allocated, as its spec has them."""
        return desired_resources(
            pod,
            init_containers=self.features.resize_init_containers,
            pod_level=self.features.resize_pod_level,
        )

    def allocated(self, record: PodRecord) -> PodResources:
        """Return the pod's allocation, or without one the resources that it desires."""
        return self.allocations.get(record.uid, record.desired)

    def differs(self, record: PodRecord) -> bool:
        """Return whether the pod desires other resources than it is allocated."""
        allocation = self.allocations.get(record.uid)
        return allocation is not None and not allocation.same(record.desired)

    def usage(self, record: PodRecord) -> Resources:
        """Return the pod's share of the node, from allocation and API status."""
        if record.share is None:
            record.share = self.requests(record, self.allocated(record), use_status=self.features.resize)
        return record.share

    def requests(
        self,
        record: PodRecord,
        resources: PodResources,
        *,
        use_status: bool = False,
        overhead: bool = True,
    ) -> Resources:
        """Return the requests that the pod would have with `resources` in its spec."""
        pod, resizes_pod_level = record.pod, self.features.resize_pod_level
        if not resources.same(record.desired):
            pod = with_resources(pod, resources, pod_level=resizes_pod_level)
        return pod_requests(
            pod,
            use_status=use_status,
            pod_level=self.features.pod_level_resources,
            pod_level_status=resizes_pod_level,
            overhead=overhead,
        )

    def active_pods(self) -> list[PodRecord]:
        """Return the pods that take room, oldest first, then by name.

        Victims at equal distance depend on the order.
        """
        return sorted((record for record in self.pods.values() if record.active), key=creation_order)


def creation_order(record: PodRecord) -> tuple[int, int, str]:
    """Return the sort key of pods by age, then name."""
    created = record.pod.metadata.creationTimestamp
    return created.seconds, created.nanos, record.pod.metadata.name
