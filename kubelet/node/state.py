"""All that the allocation core knows of one node: its capacity, its pods, and what is allocated to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kubelet.resize.conditions import ResizeCondition
from kubelet.resize.states import STORY_MAX, Cause, check, state_of
from kubelet.resources.pod_resources import PodResources, desired_resources
from kubelet.resources.usage import requested
from machinery.api.pb import core
from machinery.resources.pod_resources import Resources, amount

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What the emulated version and its gates allow."""

    resize: bool = True
    """InPlacePodVerticalScaling."""
    resize_pod_level: bool = True
    """InPlacePodLevelResourcesVerticalScaling."""
    resize_init_containers: bool = True
    """InPlacePodVerticalScalingInitContainers."""
    pod_level_resources: bool = True
    """PodLevelResources."""
    prioritized_retries: bool = True
    """Since 1.34: a retry goes by priority, QoS class and age."""
    infeasible_above_allocatable: bool = False
    """Before 1.36: a resize beyond the whole node is refused, not deferred."""
    preemption_policy: bool = False
    """SchedulerPreemptionForPodResize: the node may forbid preemption for a resize (KEP-5836)."""


def _no_swap(pod: core.Pod, container: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """How the node was started; does not change while it runs."""

    cpu_manager_policy: str = "none"
    memory_manager_policy: str = "None"
    resizes_exclusive_cpus: bool = False
    """InPlacePodVerticalScalingExclusiveCPUs."""
    resizes_exclusive_memory: bool = False
    """InPlacePodVerticalScalingExclusiveMemory."""
    uses_swap: Callable[[core.Pod, str], bool] = _no_swap
    """Whether a container of a pod may swap."""


@dataclass(slots=True)
class PodRecord:
    """One pod. `pod` is the API's object, shared: never changed here."""

    pod: core.Pod
    desired: PodResources
    pending: ResizeCondition | None = None
    in_progress: ResizeCondition | None = None
    failed: bool = False
    """Rejected or preempted by this kubelet, whatever the API says yet."""
    terminated: bool = False
    """Its containers have stopped for good."""
    counted: Resources | None = None
    """What the pod counts for on the node; None when it must be counted anew."""
    story: list[str] | None = None
    """The last steps of its resize; None while there was none."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def active(self) -> bool:
        """Whether the pod takes room."""
        return not (self.failed or self.terminated or self.pod.status.phase in TERMINAL_PHASES)

    def move(
        self,
        cause: Cause,
        *,
        pending: ResizeCondition | None,
        in_progress: ResizeCondition | None,
    ) -> None:
        """Sets both conditions; UnknownStepError where the table of `resize_way` has no such step."""
        before, after = state_of(self.pending, self.in_progress), state_of(pending, in_progress)
        check(
            f"{self.pod.metadata.namespace}/{self.pod.metadata.name}", before, cause, after, self.story or ()
        )
        self.pending, self.in_progress = pending, in_progress
        if before is not after:
            self.story = [*(self.story or ())[-STORY_MAX + 1 :], f"{after.value} ({cause.value})"]


@dataclass(slots=True)
class NodeState:
    """The state of one node. Only `kubelet.allocation` changes it."""

    node: core.Node
    settings: NodeSettings = field(default_factory=NodeSettings)
    features: Features = field(default_factory=Features)
    pods: dict[str, PodRecord] = field(default_factory=dict)
    allocations: dict[str, PodResources] = field(default_factory=dict)
    """By uid: what is checkpointed."""
    queue: list[str] = field(default_factory=list)
    """Uids of pods with a pending resize, in the order of the next retry."""
    sources_ready: bool = False
    transitions: int = 0

    def allocatable(self, resource: str) -> int:
        """Millicores, bytes, pods, ...; 0 where the node does not name it."""
        quantities = self.node.status.allocatable
        return amount(resource, quantities[resource].string) if resource in quantities else 0

    @property
    def resize_preemption_disabled(self) -> bool:
        """Whether anyone asked that no pod be preempted for a resize on this node (KEP-5836)."""
        disabled = bool(self.node.spec.podPreemptionPolicy.disableResizePreemption)
        return self.features.preemption_policy and disabled

    def next_transition(self) -> int:
        self.transitions += 1
        return self.transitions

    def desired_of(self, pod: core.Pod) -> PodResources:
        """What of the pod's resources is allocated, as its spec has it; the rest is taken as it is."""
        return desired_resources(
            pod,
            init_containers=self.features.resize_init_containers,
            pod_level=self.features.resize_pod_level,
        )

    def allocated(self, record: PodRecord) -> PodResources:
        """What the pod may use: the allocation, or without one what it desires."""
        return self.allocations.get(record.uid, record.desired)

    def differs(self, record: PodRecord) -> bool:
        """Whether the pod desires other resources than it is allocated."""
        allocation = self.allocations.get(record.uid)
        return allocation is not None and not allocation.same(record.desired)

    def usage(self, record: PodRecord) -> Resources:
        """What the pod takes of the node, from allocation and API status."""
        if record.counted is None:
            record.counted = self.requests(record, self.allocated(record), use_status=self.features.resize)
        return record.counted

    def requests(
        self,
        record: PodRecord,
        resources: PodResources,
        *,
        use_status: bool = False,
        overhead: bool = True,
    ) -> Resources:
        """What the pod would count for if it asked for `resources`."""
        return requested(
            record.pod,
            record.desired,
            resources,
            use_status=use_status,
            pod_level=self.features.pod_level_resources,
            pod_level_status=self.features.resize_pod_level,
            overhead=overhead,
        )

    def active_pods(self) -> list[PodRecord]:
        """Pods that take room, oldest first, then by name: victims at equal distance depend on the order."""
        return sorted((record for record in self.pods.values() if record.active), key=creation_order)


def creation_order(record: PodRecord) -> tuple[int, int, str]:
    created = record.pod.metadata.creationTimestamp
    return created.seconds, created.nanos, record.pod.metadata.name
