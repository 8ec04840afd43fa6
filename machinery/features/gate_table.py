"""Every feature gate, as data: which components read it, and its stage and default by version.

A gate that no component reads can be set, as upstream, and changes nothing.

`history` reads like the sentence it is: `alpha 1.34 off; beta 1.35 on; GA 1.37 locked on`. "locked" is
upstream's LockToDefault; `merged 1.37 Other` means that the gate is gone since then and `Other` decides.
`needs` are the gates without which it may not be on.

Source: Kubernetes 1.36.2's table; 1.37 from its release, later versions from the KEPs' milestones (plans).
PreferNominatedNode (KEP-1923) is not here: its behaviour is always on since 1.24 and the gate was removed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GateRow:
    """One gate; `aliases` are other names for it, from a KEP that shipped differently."""

    name: str
    components: frozenset[str]
    history: str
    needs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def _row(
    name: str, components: str, history: str, *, needs: str = "", aliases: tuple[str, ...] = ()
) -> GateRow:
    return GateRow(name, frozenset(components.split()), history, tuple(needs.split()), aliases)


GATES: tuple[GateRow, ...] = (
    # Nomination and scheduling
    _row("NominatedNodeNameForExpectation", "scheduler", "alpha 1.34 off; beta 1.35 on"),
    _row("ClearingNominatedNodeNameAfterBinding", "apiserver", "alpha 1.34 off; beta 1.35 on"),
    _row("SchedulerAsyncPreemption", "scheduler", "alpha 1.32 off; beta 1.33 on"),
    _row("SchedulerQueueingHints", "scheduler", "beta 1.28 off; beta 1.32 on; GA 1.34 locked on"),
    _row("SchedulerPopFromBackoffQ", "scheduler", "beta 1.33 on"),
    _row("SchedulerAsyncAPICalls", "", "beta 1.34 off"),
    _row("OpportunisticBatching", "", "beta 1.35 on"),
    _row("PodSchedulingReadiness", "apiserver", "alpha 1.26 off; beta 1.27 on; GA 1.30 locked on"),
    _row(
        "NodeInclusionPolicyInPodTopologySpread", "scheduler autoscaler",
        "alpha 1.25 off; beta 1.26 on; GA 1.33 locked on",
    ),
    _row(
        "MatchLabelKeysInPodTopologySpread", "apiserver scheduler autoscaler",
        "alpha 1.25 off; beta 1.27 on",
    ),
    _row("MatchLabelKeysInPodTopologySpreadSelectorMerge", "apiserver", "beta 1.34 on"),
    _row(
        "MatchLabelKeysInPodAffinity", "apiserver",
        "alpha 1.29 off; beta 1.31 on; GA 1.33 locked on",
    ),
    _row(
        "TaintTolerationComparisonOperators", "apiserver scheduler controllers kubelet autoscaler",
        "alpha 1.35 off",
    ),
    _row("VolumeLimitScaling", "scheduler autoscaler", "alpha 1.35 off; beta 1.37 on"),
    # Clients of the API server
    _row("WatchListClient", "scheduler controllers kubelet autoscaler", "beta 1.30 off; beta 1.35 on"),
    # Workloads
    _row("GenericWorkload", "apiserver scheduler", "alpha 1.35 off; beta 1.37 off"),
    _row(
        "GangScheduling", "scheduler", "alpha 1.35 off; merged 1.37 GenericWorkload",
        needs="GenericWorkload",
    ),
    _row(
        "WorkloadAwarePreemption", "apiserver scheduler", "alpha 1.36 off; merged 1.37 GenericWorkload",
        needs="GangScheduling",
    ),
    _row("TopologyAwareWorkloadScheduling", "apiserver scheduler", "alpha 1.36 off"),
    _row("MutablePodResourcesForSuspendedJobs", "apiserver", "alpha 1.35 off; beta 1.36 on"),
    _row(
        "MutableSchedulingDirectivesForSuspendedJobs", "apiserver controllers",
        "alpha 1.35 off; beta 1.36 on",
    ),
    _row("DeploymentReplicaSetTerminatingReplicas", "apiserver controllers", "alpha 1.33 off; beta 1.35 on"),
    # On in 1.35.0 to 1.35.3 and off from 1.35.4, until it was repaired for Parallel sets in 1.37.
    _row("MaxUnavailableStatefulSet", "apiserver controllers", "alpha 1.24 off; beta 1.35 off; beta 1.37 on"),
    _row("HPAScaleToZero", "apiserver", "alpha 1.16 off; beta 1.37 on"),
    # Resources of pods, and changing them in place
    _row("PodLevelResources", "apiserver scheduler kubelet", "alpha 1.32 off; beta 1.34 on"),
    _row(
        "InPlacePodVerticalScaling", "apiserver scheduler kubelet autoscaler",
        "alpha 1.27 off; beta 1.33 on; GA 1.35 locked on",
    ),
    _row(
        "InPlacePodLevelResourcesVerticalScaling", "apiserver scheduler kubelet",
        "alpha 1.35 off; beta 1.36 on",
        needs="InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures",
    ),
    _row(
        "InPlacePodVerticalScalingInitContainers", "apiserver kubelet", "beta 1.36 on",
        needs="InPlacePodVerticalScaling NodeDeclaredFeatures",
    ),
    _row(
        "InPlacePodVerticalScalingSchedulerPreemption", "apiserver scheduler kubelet",
        "alpha 1.37 off; beta 1.38 on",
        aliases=("SchedulerPreemptionForPodResize",),
    ),
    _row("InPlacePodVerticalScalingExclusiveCPUs", "kubelet", "alpha 1.32 off"),
    _row("InPlacePodVerticalScalingExclusiveMemory", "kubelet", "alpha 1.34 off"),
    _row(
        "NodeDeclaredFeatures", "apiserver scheduler kubelet autoscaler",
        "alpha 1.35 off; beta 1.36 on; GA 1.37 locked on",
    ),
    _row(
        "PodObservedGenerationTracking", "apiserver scheduler kubelet",
        "alpha 1.33 off; beta 1.34 on; GA 1.35 locked on",
    ),
    # Devices
    _row(
        "DynamicResourceAllocation", "scheduler autoscaler",
        "alpha 1.26 off; beta 1.32 off; GA 1.34 on; GA 1.35 locked on",
    ),
    _row(
        "DRAExtendedResource", "scheduler kubelet autoscaler",
        "alpha 1.34 off; beta 1.36 on; GA 1.37 locked on",
    ),
    _row("DRADeviceBindingConditions", "scheduler autoscaler", "alpha 1.34 off; beta 1.36 on"),
    _row(
        "DRAAdminAccess", "scheduler autoscaler",
        "alpha 1.32 off; beta 1.34 on; GA 1.36 locked on",
    ),
    _row(
        "DRAPrioritizedList", "scheduler autoscaler",
        "alpha 1.33 off; beta 1.34 on; GA 1.36 on; GA 1.37 locked on",
    ),
    _row("DRAPartitionableDevices", "scheduler autoscaler", "alpha 1.33 off; beta 1.36 on"),
    _row(
        "DRADeviceTaints", "scheduler controllers autoscaler",
        "alpha 1.33 off; beta 1.36 on; GA 1.37 on",
    ),
    _row("DRAConsumableCapacity", "scheduler autoscaler", "alpha 1.34 off; beta 1.36 on"),
    _row(
        "DRAResourceClaimDeviceStatus", "scheduler autoscaler",
        "alpha 1.32 off; beta 1.33 on; GA 1.37 locked on",
    ),
    _row("DRAResourceClaimGranularStatusAuthorization", "apiserver", "beta 1.36 on"),
    _row("DRASchedulerFilterTimeout", "scheduler autoscaler", "beta 1.34 on"),
    _row("DRAListTypeAttributes", "scheduler autoscaler", "alpha 1.36 off"),
    # Services
    _row("RelaxedServiceNameValidation", "apiserver", "alpha 1.34 off; beta 1.36 on; GA 1.37 locked on"),
    # Controllers
    _row("SeparateTaintEvictionController", "", "beta 1.29 on; GA 1.34 locked on"),
)  # fmt: skip
