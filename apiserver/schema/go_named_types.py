"""The fields of the API whose Go type is a text with a name of its own, as Go's decoders name it.

Source: k8s.io/api and k8s.io/apimachinery 1.36 (types.go). A field that is not here is a plain string.
"""

from __future__ import annotations

from typing import Final

_FIELDS: Final = """
core.v1 AppArmorProfile type=AppArmorProfileType
core.v1 AttachedVolume name=UniqueVolumeName
core.v1 AzureDiskVolumeSource cachingMode=AzureDataDiskCachingMode kind=AzureDataDiskKind
core.v1 Capabilities add=Capability drop=Capability
core.v1 ComponentCondition type=ComponentConditionType status=ConditionStatus
core.v1 ConfigMapNodeConfigSource uid=types.UID
core.v1 Container restartPolicy=ContainerRestartPolicy terminationMessagePolicy=TerminationMessagePolicy
core.v1 Container imagePullPolicy=PullPolicy
core.v1 ContainerPort protocol=Protocol
core.v1 ContainerResizePolicy resourceName=ResourceName restartPolicy=ResourceResizeRestartPolicy
core.v1 ContainerRestartRule action=ContainerRestartRuleAction
core.v1 ContainerRestartRuleOnExitCodes operator=ContainerRestartRuleOnExitCodesOperator
core.v1 ContainerStatus stopSignal=Signal
core.v1 EmptyDirVolumeSource medium=StorageMedium
core.v1 EndpointPort protocol=Protocol
core.v1 EphemeralContainerCommon restartPolicy=ContainerRestartPolicy imagePullPolicy=PullPolicy
core.v1 EphemeralContainerCommon terminationMessagePolicy=TerminationMessagePolicy
core.v1 HTTPGetAction scheme=URIScheme
core.v1 HostPathVolumeSource type=HostPathType
core.v1 ImageVolumeSource pullPolicy=PullPolicy
core.v1 Lifecycle stopSignal=Signal
core.v1 LimitRangeItem type=LimitType
core.v1 LoadBalancerIngress ipMode=LoadBalancerIPMode
core.v1 ModifyVolumeStatus status=PersistentVolumeClaimModifyVolumeStatus
core.v1 NamespaceCondition type=NamespaceConditionType status=ConditionStatus
core.v1 NamespaceSpec finalizers=FinalizerName
core.v1 NamespaceStatus phase=NamespacePhase
core.v1 NodeAddress type=NodeAddressType
core.v1 NodeCondition type=NodeConditionType status=ConditionStatus
core.v1 NodeSelectorRequirement operator=NodeSelectorOperator
core.v1 NodeStatus phase=NodePhase volumesInUse=UniqueVolumeName
core.v1 ObjectReference uid=types.UID
core.v1 PersistentVolumeClaimCondition type=PersistentVolumeClaimConditionType status=ConditionStatus
core.v1 PersistentVolumeClaimSpec accessModes=PersistentVolumeAccessMode volumeMode=PersistentVolumeMode
core.v1 PersistentVolumeClaimStatus phase=PersistentVolumeClaimPhase accessModes=PersistentVolumeAccessMode
core.v1 PersistentVolumeClaimStatus allocatedResourceStatuses=ClaimResourceStatus
core.v1 PersistentVolumeSpec accessModes=PersistentVolumeAccessMode volumeMode=PersistentVolumeMode
core.v1 PersistentVolumeSpec persistentVolumeReclaimPolicy=PersistentVolumeReclaimPolicy
core.v1 PersistentVolumeStatus phase=PersistentVolumePhase
core.v1 PodCondition type=PodConditionType status=ConditionStatus
core.v1 PodOS name=OSName
core.v1 PodReadinessGate conditionType=PodConditionType
core.v1 PodSecurityContext supplementalGroupsPolicy=SupplementalGroupsPolicy
core.v1 PodSecurityContext fsGroupChangePolicy=PodFSGroupChangePolicy
core.v1 PodSecurityContext seLinuxChangePolicy=PodSELinuxChangePolicy
core.v1 PodSpec restartPolicy=RestartPolicy dnsPolicy=DNSPolicy preemptionPolicy=PreemptionPolicy
core.v1 PodStatus phase=PodPhase qosClass=PodQOSClass resize=PodResizeStatus
core.v1 PortStatus protocol=Protocol
core.v1 Preconditions uid=types.UID
core.v1 ReplicationControllerCondition type=ReplicationControllerConditionType status=ConditionStatus
core.v1 ResourceHealth resourceID=ResourceID health=ResourceHealthStatus
core.v1 ResourceQuotaSpec scopes=ResourceQuotaScope
core.v1 ResourceStatus name=ResourceName
core.v1 ScopedResourceSelectorRequirement scopeName=ResourceQuotaScope operator=ScopeSelectorOperator
core.v1 SeccompProfile type=SeccompProfileType
core.v1 Secret type=SecretType
core.v1 SecurityContext procMount=ProcMountType
core.v1 ServicePort protocol=Protocol
core.v1 ServiceSpec type=ServiceType sessionAffinity=ServiceAffinity ipFamilies=IPFamily
core.v1 ServiceSpec externalTrafficPolicy=ServiceExternalTrafficPolicy ipFamilyPolicy=IPFamilyPolicy
core.v1 ServiceSpec internalTrafficPolicy=ServiceInternalTrafficPolicy
core.v1 Taint effect=TaintEffect
core.v1 Toleration operator=TolerationOperator effect=TaintEffect
core.v1 TopologySpreadConstraint whenUnsatisfiable=UnsatisfiableConstraintAction
core.v1 TopologySpreadConstraint nodeAffinityPolicy=NodeInclusionPolicy nodeTaintsPolicy=NodeInclusionPolicy
core.v1 VolumeMount recursiveReadOnly=RecursiveReadOnlyMode mountPropagation=MountPropagationMode
core.v1 VolumeMountStatus recursiveReadOnly=RecursiveReadOnlyMode
apps.v1 DaemonSetCondition type=DaemonSetConditionType status=ConditionStatus
apps.v1 DaemonSetUpdateStrategy type=DaemonSetUpdateStrategyType
apps.v1 DeploymentCondition type=DeploymentConditionType status=ConditionStatus
apps.v1 DeploymentStrategy type=DeploymentStrategyType
apps.v1 ReplicaSetCondition type=ReplicaSetConditionType status=ConditionStatus
apps.v1 StatefulSetCondition type=StatefulSetConditionType status=ConditionStatus
apps.v1 StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted=PersistentVolumeClaimRetentionPolicyType
apps.v1 StatefulSetPersistentVolumeClaimRetentionPolicy whenScaled=PersistentVolumeClaimRetentionPolicyType
apps.v1 StatefulSetSpec podManagementPolicy=PodManagementPolicyType
apps.v1 StatefulSetUpdateStrategy type=StatefulSetUpdateStrategyType
batch.v1 CronJobSpec concurrencyPolicy=ConcurrencyPolicy
batch.v1 JobCondition type=JobConditionType status=ConditionStatus
batch.v1 JobSpec completionMode=CompletionMode podReplacementPolicy=PodReplacementPolicy
batch.v1 PodFailurePolicyOnExitCodesRequirement operator=PodFailurePolicyOnExitCodesOperator
batch.v1 PodFailurePolicyOnPodConditionsPattern type=PodConditionType status=ConditionStatus
batch.v1 PodFailurePolicyRule action=PodFailurePolicyAction
batch.v1 UncountedTerminatedPods succeeded=types.UID failed=types.UID
policy.v1 PodDisruptionBudgetSpec unhealthyPodEvictionPolicy=UnhealthyPodEvictionPolicyType
scheduling.v1 PriorityClass preemptionPolicy=PreemptionPolicy
scheduling.v1alpha2 PodGroupSpec disruptionMode=DisruptionMode
scheduling.v1alpha2 PodGroupTemplate disruptionMode=DisruptionMode
storage.v1 CSIDriverSpec volumeLifecycleModes=VolumeLifecycleMode fsGroupPolicy=FSGroupPolicy
storage.v1 StorageClass reclaimPolicy=PersistentVolumeReclaimPolicy volumeBindingMode=VolumeBindingMode
coordination.v1 LeaseSpec strategy=CoordinatedLeaseStrategy
flowcontrol.v1 FlowDistinguisherMethod type=FlowDistinguisherMethodType
flowcontrol.v1 FlowSchemaCondition type=FlowSchemaConditionType status=ConditionStatus
flowcontrol.v1 LimitResponse type=LimitResponseType
flowcontrol.v1 PriorityLevelConfigurationCondition type=PriorityLevelConfigurationConditionType
flowcontrol.v1 PriorityLevelConfigurationCondition status=ConditionStatus
flowcontrol.v1 PriorityLevelConfigurationSpec type=PriorityLevelEnablement
flowcontrol.v1 Subject kind=SubjectKind
resource.v1 DeviceAllocationConfiguration source=AllocationConfigSource
resource.v1 DeviceConstraint matchAttribute=FullyQualifiedName distinctAttribute=FullyQualifiedName
resource.v1 DeviceRequestAllocationResult shareID=types.UID
resource.v1 DeviceSubRequest allocationMode=DeviceAllocationMode
resource.v1 DeviceTaint effect=DeviceTaintEffect
resource.v1 DeviceToleration operator=DeviceTolerationOperator effect=DeviceTaintEffect
resource.v1 ExactDeviceRequest allocationMode=DeviceAllocationMode
resource.v1 NodeAllocatableResourceMapping capacityKey=QualifiedName
resource.v1 ResourceClaimConsumerReference uid=types.UID
authentication.v1 BoundObjectReference uID=types.UID
certificates.v1 CertificateSigningRequestCondition type=RequestConditionType status=ConditionStatus
certificates.v1 CertificateSigningRequestSpec usages=KeyUsage
discovery.v1 EndpointPort protocol=Protocol
discovery.v1 EndpointSlice addressType=AddressType
networking.v1 HTTPIngressPath pathType=PathType
networking.v1 IngressPortStatus protocol=Protocol
networking.v1 NetworkPolicyPort protocol=Protocol
networking.v1 NetworkPolicySpec policyTypes=PolicyType
autoscaling.v1 ContainerResourceMetricSource name=ResourceName
autoscaling.v1 ContainerResourceMetricStatus name=ResourceName
autoscaling.v1 HorizontalPodAutoscalerCondition type=HorizontalPodAutoscalerConditionType
autoscaling.v1 HorizontalPodAutoscalerCondition status=ConditionStatus
autoscaling.v1 MetricSpec type=MetricSourceType
autoscaling.v1 MetricStatus type=MetricSourceType
autoscaling.v1 ResourceMetricSource name=ResourceName
autoscaling.v1 ResourceMetricStatus name=ResourceName
autoscaling.v2 ContainerResourceMetricSource name=v1.ResourceName
autoscaling.v2 ContainerResourceMetricStatus name=v1.ResourceName
autoscaling.v2 HPAScalingPolicy type=HPAScalingPolicyType
autoscaling.v2 HPAScalingRules selectPolicy=ScalingPolicySelect
autoscaling.v2 HorizontalPodAutoscalerCondition type=HorizontalPodAutoscalerConditionType
autoscaling.v2 HorizontalPodAutoscalerCondition status=v1.ConditionStatus
autoscaling.v2 MetricSpec type=MetricSourceType
autoscaling.v2 MetricStatus type=MetricSourceType
autoscaling.v2 MetricTarget type=MetricTargetType
autoscaling.v2 ResourceMetricSource name=v1.ResourceName
autoscaling.v2 ResourceMetricStatus name=v1.ResourceName
meta.v1 Condition status=ConditionStatus
meta.v1 DeleteOptions propagationPolicy=DeletionPropagation
meta.v1 FieldSelectorRequirement operator=FieldSelectorOperator
meta.v1 LabelSelectorRequirement operator=LabelSelectorOperator
meta.v1 ManagedFieldsEntry operation=ManagedFieldsOperationType
meta.v1 ObjectMeta uid=types.UID
meta.v1 OwnerReference uid=types.UID
meta.v1 Preconditions uid=types.UID
meta.v1 Status reason=StatusReason
meta.v1 StatusCause reason=CauseType
meta.v1 StatusDetails uid=types.UID
"""
"""By package and message: field=type. A type without a package is of the package of the field's message."""


def _read() -> dict[tuple[str, str], str]:
    found = {}
    for package, message, *fields in map(str.split, _FIELDS.strip().splitlines()):
        prefix = "k8s.io.apimachinery.pkg.apis." if package.startswith("meta.") else "k8s.io.api."
        for field, _, name in (each.partition("=") for each in fields):
            qualified = name if "." in name else f"{package.rpartition('.')[2]}.{name}"
            found[f"{prefix}{package}.{message}", field] = qualified
    return found


NAMED_TYPES: Final = _read()
"""By message (full name) and field, the Go type, as `v1.RestartPolicy`; of lists and maps, of an element."""

MAPS_BY_RESOURCE_NAME: Final = frozenset({"allocatedResourceStatuses"})
"""Maps of texts whose keys have a type with a name, too: v1.ResourceName."""
