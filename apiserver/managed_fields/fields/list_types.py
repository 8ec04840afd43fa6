"""How lists and maps of the wire table's types merge, where the table does not say it.

A package, then one line for each type: `field=set` is a list of values, `field=a,b` a list of objects with
these keys, `field=atomic` a map that is one value, `*=atomic` a type that is one value. Lists that are not
here are atomic; maps and types merge by field.

Source: x-kubernetes-list-type, x-kubernetes-list-map-keys and x-kubernetes-map-type of the OpenAPI
definitions of 1.36, and of 1.37 for newer types.
"""

from __future__ import annotations

from functools import cache

_TABLE = """\
# k8s.io.api.apps.v1
DaemonSetStatus conditions=type
DeploymentStatus conditions=type
ReplicaSetStatus conditions=type
StatefulSetStatus conditions=type
# k8s.io.api.autoscaling.v1
CrossVersionObjectReference *=atomic
# k8s.io.api.autoscaling.v2
HorizontalPodAutoscalerStatus conditions=type
# k8s.io.api.batch.v1
PodFailurePolicyOnExitCodesRequirement values=set
UncountedTerminatedPods failed=set succeeded=set
# k8s.io.api.certificates.v1
CertificateSigningRequestStatus conditions=type
# k8s.io.api.core.v1
ComponentStatus conditions=type
ConfigMapKeySelector *=atomic
Container env=name ports=containerPort,protocol volumeDevices=devicePath volumeMounts=mountPath
ContainerRestartRuleOnExitCodes values=set
ContainerStatus allocatedResourcesStatus=name volumeMounts=mountPath
EndpointAddress *=atomic
EndpointPort *=atomic
EphemeralContainer env=name ports=containerPort,protocol volumeDevices=devicePath volumeMounts=mountPath
FileKeySelector *=atomic
LocalObjectReference *=atomic
NamespaceStatus conditions=type
NodeAllocatableResourceClaimStatus containers=set mapping=name overhead=name
NodePodPreemptionPolicy disableResizePreemption=set
NodeSelector *=atomic
NodeSelectorTerm *=atomic
NodeSpec podCIDRs=set
NodeStatus addresses=type conditions=type
ObjectFieldSelector *=atomic
ObjectReference *=atomic
PersistentVolumeClaimStatus conditions=type
PodSpec containers=name ephemeralContainers=name evictionResponders=name hostAliases=ip
  imagePullSecrets=name initContainers=name nodeSelector=atomic resourceClaims=name schedulingGates=name
  topologySpreadConstraints=topologyKey,whenUnsatisfiable volumes=name
PodStatus conditions=type nodeAllocatableResourceClaimStatuses=resourceClaimName podIPs=ip
  resourceClaimStatuses=name volumeHealth=name
ReplicationControllerSpec selector=atomic
ReplicationControllerStatus conditions=type
ResourceFieldSelector *=atomic
ResourceRequirements claims=name
ResourceStatus resources=resourceID
ScopeSelector *=atomic
SecretKeySelector *=atomic
SecretReference *=atomic
ServiceAccount secrets=name
ServiceSpec ports=port,protocol selector=atomic
ServiceStatus conditions=type
TopologySelectorTerm *=atomic
TypedLocalObjectReference *=atomic
VolumeMount bindMountOptions=set
# k8s.io.api.discovery.v1
Endpoint addresses=set
EndpointPort *=atomic
# k8s.io.api.flowcontrol.v1
FlowSchemaStatus conditions=type
NonResourcePolicyRule nonResourceURLs=set verbs=set
PriorityLevelConfigurationStatus conditions=type
ResourcePolicyRule apiGroups=set namespaces=set resources=set verbs=set
# k8s.io.api.networking.v1
ServiceBackendPort *=atomic
ServiceCIDRStatus conditions=type
# k8s.io.api.node.v1
Scheduling nodeSelector=atomic
# k8s.io.api.policy.v1
PodDisruptionBudgetStatus conditions=type
# k8s.io.api.rbac.v1
RoleRef *=atomic
Subject *=atomic
# k8s.io.api.resource.v1
AllocatedDeviceStatus conditions=type
DeviceRequestAllocationResult skipNodeOperations=set
ResourceClaimStatus devices=driver,device,pool,shareID reservedFor=uid
ResourceSliceSpec skipNodeOperations=set
# k8s.io.api.scheduling.v1alpha2
PodGroupSpec resourceClaims=name
PodGroupStatus conditions=type resourceClaimStatuses=name
PodGroupTemplate resourceClaims=name
WorkloadSpec podGroupTemplates=name
# k8s.io.api.storage.v1
CSIDriverSpec volumeLifecycleModes=set
CSINodeSpec drivers=name
# k8s.io.apimachinery.pkg.apis.meta.v1
LabelSelector *=atomic
ObjectMeta finalizers=set ownerReferences=uid
OwnerReference *=atomic
"""


@cache
def merge_rules() -> dict[str, dict[str, str]]:
    """Return the rules of each type by its full name: of its fields, and under `*` of the type itself."""
    rules: dict[str, dict[str, str]] = {}
    package = ""
    for line in _TABLE.replace("\n  ", " ").splitlines():
        if line.startswith("# "):
            package = line[2:]
            continue
        name, *pairs = line.split()
        rules[f"{package}.{name}"] = dict(pair.split("=") for pair in pairs)
    return rules
