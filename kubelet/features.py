"""The kubelet's behaviour at an emulated version, with its feature gates. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nominee.machinery.features.gates import Gates, Version

ResizePreemptionFlavour = Literal["kep", "1.37"]
"""KEP-5836's text, or what Kubernetes 1.37 shipped."""

RESIZE_CONDITIONS_SINCE = Version(1, 33)
PRIORITIZED_RETRIES_SINCE = Version(1, 34)
DEFERRED_ABOVE_ALLOCATABLE_SINCE = Version(1, 36)
GUARANTEED_CPU_RESIZE_UNTIL = Version(1, 35)
"""The last version that declares GuaranteedQoSPodCPUResize (kubernetes/kubernetes#136759)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features of the core at the emulated version, with its gates."""

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
    """InPlacePodVerticalScalingSchedulerPreemption: the node may forbid preemption for a resize."""
    extended_resources_of_devices: bool = True
    """DRAExtendedResource: an extended resource of which the node has none is one of devices."""
    toleration_comparison: bool = False
    """TaintTolerationComparisonOperators."""
    preempts_for_resize: bool = True
    """Whether the kubelet itself ever preempts for a critical pod's resize."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFeatures:
    """The fields of statuses that this kubelet knows: it writes no other."""

    resize: bool
    """allocatedResources and resources of container statuses."""
    resize_conditions: bool
    """Conditions PodResizePending and PodResizeInProgress; otherwise the field `resize`."""
    resize_pod_level: bool
    """allocatedResources and resources of the pod's status."""
    preemption_policy: bool
    """Condition PodResizePreemptionDisabled."""
    observed_generation: bool
    """In the status and in its conditions."""
    declared_features: tuple[str, ...]
    """What the node's status declares."""


def features(version: Version, gates: Gates, flavour: ResizePreemptionFlavour = "kep") -> Features:
    """Return the features of the core.

    With the gate on, the kubelet of `flavour` 1.37 leaves preemption for a resize to the scheduler.
    """
    scheduler_preempts = gates.enabled("InPlacePodVerticalScalingSchedulerPreemption")
    return Features(
        resize=gates.enabled("InPlacePodVerticalScaling"),
        resize_pod_level=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
        resize_init_containers=gates.enabled("InPlacePodVerticalScalingInitContainers"),
        pod_level_resources=gates.enabled("PodLevelResources"),
        prioritized_retries=version >= PRIORITIZED_RETRIES_SINCE,
        infeasible_above_allocatable=version < DEFERRED_ABOVE_ALLOCATABLE_SINCE,
        preemption_policy=scheduler_preempts,
        extended_resources_of_devices=gates.enabled("DRAExtendedResource"),
        toleration_comparison=gates.enabled("TaintTolerationComparisonOperators"),
        preempts_for_resize=not (scheduler_preempts and flavour == "1.37"),
    )


def status_features(version: Version, gates: Gates, *, cpu_manager_policy: str = "none") -> StatusFeatures:
    """Return the features of the statuses that are written to the API server."""
    resize = gates.enabled("InPlacePodVerticalScaling")
    declared = []
    if gates.enabled("NodeDeclaredFeatures"):
        exclusive = gates.enabled("InPlacePodVerticalScalingExclusiveCPUs")
        if version <= GUARANTEED_CPU_RESIZE_UNTIL and (cpu_manager_policy != "static" or exclusive):
            declared.append("GuaranteedQoSPodCPUResize")
        declared += [
            gate
            for gate in (
                "InPlacePodLevelResourcesVerticalScaling",
                "InPlacePodVerticalScalingInitContainers",
            )
            if gates.enabled(gate)
        ]
    return StatusFeatures(
        resize=resize,
        resize_conditions=resize and version >= RESIZE_CONDITIONS_SINCE,
        resize_pod_level=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
        preemption_policy=resize and gates.enabled("InPlacePodVerticalScalingSchedulerPreemption"),
        observed_generation=gates.enabled("PodObservedGenerationTracking"),
        declared_features=tuple(declared),
    )
