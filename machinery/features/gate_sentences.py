"""The effect of each feature gate here, in one sentence; only gates that a component reads have one."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # Nomination and scheduling
    "NominatedNodeNameForExpectation": (
        "The scheduler writes the chosen node to status.nominatedNodeName before a pod waits on Permit or "
        "in PreBind (KEP-5278)."
    ),
    "ClearingNominatedNodeNameAfterBinding": (
        "The API server clears status.nominatedNodeName when a pod is bound (KEP-5278)."
    ),
    "SchedulerAsyncPreemption": (
        "The scheduler evicts the victims of a preemption while it schedules other pods."
    ),
    "SchedulerQueueingHints": (
        "Plugins decide for each change of an object whether it may make an unschedulable pod schedulable; "
        "only such pods are tried again."
    ),
    "SchedulerPopFromBackoffQ": (
        "While no pod is in the active queue, the scheduler takes pods whose back-off has not ended."
    ),
    "PodSchedulingReadiness": (
        "A pod with spec.schedulingGates is not scheduled until all of them are removed."
    ),
    "NodeInclusionPolicyInPodTopologySpread": (
        "nodeAffinityPolicy and nodeTaintsPolicy of a topology spread constraint select the nodes that are "
        "counted."
    ),
    "MatchLabelKeysInPodTopologySpread": (
        "matchLabelKeys of a topology spread constraint select pods that have the incoming pod's values of "
        "these labels."
    ),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": (
        "The API server adds matchLabelKeys of a new pod's topology spread constraints to their label "
        "selectors."
    ),
    "MatchLabelKeysInPodAffinity": (
        "The API server adds matchLabelKeys and mismatchLabelKeys of a new pod's affinity terms to their "
        "label selectors."
    ),
    "TaintTolerationComparisonOperators": "Tolerations may have the operators Gt and Lt.",
    "VolumeLimitScaling": (
        "A pod does not fit on a node without the CSI driver of its volumes, if the CSIDriver has "
        "preventPodSchedulingIfMissing."
    ),
    # Clients of the API server
    "WatchListClient": (
        "A component that starts lists the newest state, not what the API server has cached, which may be "
        "older than what it knew before."
    ),
    # Workloads
    "GenericWorkload": (
        "The API server serves Workloads and PodGroups, and the pods of a PodGroup are scheduled together "
        "(KEP-4671)."
    ),
    "GangScheduling": "The pods of a gang are bound only when minCount of them fit (KEP-4671).",
    "WorkloadAwarePreemption": (
        "PodGroups have a priority and a disruption mode: a group may be evicted as a whole (KEP-5710)."
    ),
    "TopologyAwareWorkloadScheduling": (
        "A PodGroup may require one topology domain for all its pods (KEP-5732)."
    ),
    "MutablePodResourcesForSuspendedJobs": (
        "The resources in the pod template of a suspended Job may be changed."
    ),
    "MutableSchedulingDirectivesForSuspendedJobs": (
        "The scheduling directives in the pod template of a suspended Job may be changed also after the Job"
        " has run; status.startTime is cleared when a Job is suspended."
    ),
    "DeploymentReplicaSetTerminatingReplicas": (
        "Deployments and ReplicaSets report status.terminatingReplicas."
    ),
    "MaxUnavailableStatefulSet": (
        "A rolling update of a StatefulSet may have maxUnavailable pods away at once (KEP-961)."
    ),
    "HPAScaleToZero": (
        "A HorizontalPodAutoscaler with an Object or External metric may have minReplicas 0 (KEP-2021)."
    ),
    # Resources of pods, and changing them in place
    "PodLevelResources": (
        "Pods may have resources of their own beside those of their containers (spec.resources)."
    ),
    "InPlacePodVerticalScaling": "The resources of containers can be changed while they run (KEP-1287).",
    "InPlacePodLevelResourcesVerticalScaling": "Pod-level resources can be changed while the pod runs.",
    "InPlacePodVerticalScalingInitContainers": (
        "The resources of all init containers can be changed, not only those of sidecars."
    ),
    "InPlacePodVerticalScalingSchedulerPreemption": (
        "The scheduler evicts pods of lower priority for a deferred resize (KEP-5836)."
    ),
    "InPlacePodVerticalScalingExclusiveCPUs": "Pods with exclusive CPUs (static CPU manager) can be resized.",
    "InPlacePodVerticalScalingExclusiveMemory": (
        "Pods with exclusive memory (Static memory manager) can be resized."
    ),
    "NodeDeclaredFeatures": (
        "Nodes report status.declaredFeatures; a pod or resize that needs a feature is only accepted for "
        "nodes that have it."
    ),
    "PodObservedGenerationTracking": (
        "observedGeneration in a pod's status and conditions names the generation that they are for."
    ),
    # Devices
    "DynamicResourceAllocation": "The scheduler allocates devices to the ResourceClaims of pods (KEP-4381).",
    "DRAExtendedResource": (
        "A request for an extended resource may be satisfied with devices of a DeviceClass; kubelets "
        "admit the pod."
    ),
    "DRADeviceBindingConditions": "A pod is bound only when the binding conditions of its devices are true.",
    "DRAAdminAccess": "A claim with adminAccess gets devices that are in use.",
    "DRAPrioritizedList": "A request may list alternatives in the order of preference (firstAvailable).",
    "DRAPartitionableDevices": "Devices may consume shared counters, so that one device excludes another.",
    "DRADeviceTaints": (
        "Devices may have taints: untolerated, they are not allocated, and with NoExecute their pods are "
        "evicted."
    ),
    "DRAConsumableCapacity": "Several claims may share a device, each with a part of its capacity.",
    "DRAResourceClaimDeviceStatus": "Claims have status.devices; DRADeviceBindingConditions needs it.",
    "DRAResourceClaimGranularStatusAuthorization": (
        "Writers of a claim's status need permissions for the binding and for each driver."
    ),
    "DRASchedulerFilterTimeout": (
        "The search for devices on a node has a time limit (filterTimeout of DynamicResources)."
    ),
    "DRAListTypeAttributes": "Attributes of devices may be lists.",
    # Services
    "RelaxedServiceNameValidation": "The name of a Service may begin with a digit (KEP-5311).",
}
