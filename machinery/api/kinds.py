"""The table of kinds: one row per kind.

The API server's rules of each kind are rows of `apiserver/kinds/table.py`. Source: Kubernetes 1.36's API
groups; keys in etcd as measured on kube-apiserver 1.36.2 (`/registry/minions`, no group for built-in kinds).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.message import Message

from nominee.machinery.api.pb import (
    apps,
    autoscaling,
    autoscaling_v1,
    batch,
    certificates,
    coordination,
    core,
    devices,
    discovery,
    events,
    extensions,
    flowcontrol,
    meta,
    networking,
    node,
    policy,
    rbac,
    scheduling,
    storage,
    workloads,
)


class Object(Protocol):
    """Any Kubernetes object: a message with `metadata`."""

    @property
    def metadata(self) -> meta.ObjectMeta: ...


M = TypeVar("M", bound=Message)
M_co = TypeVar("M_co", bound=Message, covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[M_co]):
    """One kind: its names, its message and where it lies in etcd.

    `plural` is the resource of requests ("pods"); `storage_prefix` comes between `/registry/` and the
    namespace or name ("minions" for nodes); `categories` are names for several kinds at once (`all`); `gate`
    is the feature gate without which the API server does not serve it; `read_only` objects are not made.
    Kinds compare by identity: there is one `Kind` per kind.
    """

    group: str
    version: str
    kind: str
    plural: str
    message: type[M_co]
    list_message: type[Message]
    namespaced: bool = True
    storage_prefix: str = ""
    short_names: tuple[str, ...] = ()
    subresources: frozenset[str] = field(default_factory=frozenset)
    categories: tuple[str, ...] = ()
    gate: str = ""
    read_only: bool = False

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """How error messages name it: `pods`, `poddisruptionbudgets.policy`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_kind(self) -> str:
        """How validation messages name it: `Pod`, `PodDisruptionBudget.policy`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def key_prefix(self, namespace: str = "") -> str:
        """Return the etcd prefix of all objects, or of one namespace's, with the trailing slash."""
        prefix = f"/registry/{self.storage_prefix or self.plural}/"
        return f"{prefix}{namespace}/" if namespace else prefix

    def key(self, namespace: str, name: str) -> str:
        """Return the etcd key of one object; the namespace is ignored for cluster-scoped kinds."""
        return self.key_prefix(namespace if self.namespaced else "") + name

    def __repr__(self) -> str:
        return f"<{self.api_version} {self.kind}>"


AnyKind = Kind[Message]
"""A kind of any message. It accepts every kind, since kinds are covariant."""


def _subresources(*names: str) -> frozenset[str]:
    return frozenset(names)


_ALL = ("all",)  # what `kubectl get all` means


NAMESPACE = Kind(
    "", "v1", "Namespace", "namespaces", core.Namespace, core.NamespaceList, namespaced=False,
    short_names=("ns",), subresources=_subresources("status", "finalize"),
)  # fmt: skip
NODE = Kind(
    "", "v1", "Node", "nodes", core.Node, core.NodeList, namespaced=False, storage_prefix="minions",
    short_names=("no",), subresources=_subresources("status", "proxy"),
)  # fmt: skip
POD = Kind(
    "", "v1", "Pod", "pods", core.Pod, core.PodList, short_names=("po",),
    categories=_ALL,
    subresources=_subresources("status", "binding", "resize", "eviction", "ephemeralcontainers"),
)  # fmt: skip
SERVICE = Kind(
    "", "v1", "Service", "services", core.Service, core.ServiceList, storage_prefix="services/specs",
    short_names=("svc",), subresources=_subresources("status"), categories=_ALL,
)  # fmt: skip
CONFIG_MAP = Kind(
    "", "v1", "ConfigMap", "configmaps", core.ConfigMap, core.ConfigMapList, short_names=("cm",)
)  # fmt: skip
PERSISTENT_VOLUME_CLAIM = Kind(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", core.PersistentVolumeClaim,
    core.PersistentVolumeClaimList, short_names=("pvc",), subresources=_subresources("status"),
)  # fmt: skip
PERSISTENT_VOLUME = Kind(
    "", "v1", "PersistentVolume", "persistentvolumes", core.PersistentVolume, core.PersistentVolumeList,
    namespaced=False, short_names=("pv",), subresources=_subresources("status"),
)  # fmt: skip
EVENT = Kind("", "v1", "Event", "events", core.Event, core.EventList, short_names=("ev",))
EVENTS_EVENT = Kind(
    "events.k8s.io", "v1", "Event", "events", events.Event, events.EventList, short_names=("ev",)
)
PRIORITY_CLASS = Kind(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", scheduling.PriorityClass,
    scheduling.PriorityClassList, namespaced=False, short_names=("pc",),
)  # fmt: skip
POD_GROUP = Kind(
    "scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups", workloads.PodGroup, workloads.PodGroupList,
    subresources=_subresources("status"), gate="GenericWorkload",
)  # fmt: skip
WORKLOAD = Kind(
    "scheduling.k8s.io", "v1alpha2", "Workload", "workloads", workloads.Workload, workloads.WorkloadList,
    gate="GenericWorkload",
)  # fmt: skip
POD_DISRUPTION_BUDGET = Kind(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", policy.PodDisruptionBudget,
    policy.PodDisruptionBudgetList, short_names=("pdb",), subresources=_subresources("status"),
)  # fmt: skip
STORAGE_CLASS = Kind(
    "storage.k8s.io", "v1", "StorageClass", "storageclasses", storage.StorageClass, storage.StorageClassList,
    namespaced=False, short_names=("sc",),
)  # fmt: skip
CSI_NODE = Kind(
    "storage.k8s.io", "v1", "CSINode", "csinodes", storage.CSINode, storage.CSINodeList, namespaced=False
)
CSI_DRIVER = Kind(
    "storage.k8s.io", "v1", "CSIDriver", "csidrivers", storage.CSIDriver, storage.CSIDriverList,
    namespaced=False,
)  # fmt: skip
CSI_STORAGE_CAPACITY = Kind(
    "storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", storage.CSIStorageCapacity,
    storage.CSIStorageCapacityList,
)  # fmt: skip
VOLUME_ATTACHMENT = Kind(
    "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", storage.VolumeAttachment,
    storage.VolumeAttachmentList, namespaced=False, subresources=_subresources("status"),
)  # fmt: skip
REPLICA_SET = Kind(
    "apps", "v1", "ReplicaSet", "replicasets", apps.ReplicaSet, apps.ReplicaSetList, short_names=("rs",),
    subresources=_subresources("status", "scale"), categories=_ALL,
)  # fmt: skip
DEPLOYMENT = Kind(
    "apps", "v1", "Deployment", "deployments", apps.Deployment, apps.DeploymentList, short_names=("deploy",),
    subresources=_subresources("status", "scale"), categories=_ALL,
)  # fmt: skip
DAEMON_SET = Kind(
    "apps", "v1", "DaemonSet", "daemonsets", apps.DaemonSet, apps.DaemonSetList, short_names=("ds",),
    subresources=_subresources("status"), categories=_ALL,
)  # fmt: skip
STATEFUL_SET = Kind(
    "apps", "v1", "StatefulSet", "statefulsets", apps.StatefulSet, apps.StatefulSetList, short_names=("sts",),
    subresources=_subresources("status", "scale"), categories=_ALL,
)  # fmt: skip
SECRET = Kind("", "v1", "Secret", "secrets", core.Secret, core.SecretList)
SERVICE_ACCOUNT = Kind(
    "", "v1", "ServiceAccount", "serviceaccounts", core.ServiceAccount, core.ServiceAccountList,
    short_names=("sa",), subresources=_subresources("token"),
)  # fmt: skip
LIMIT_RANGE = Kind(
    "", "v1", "LimitRange", "limitranges", core.LimitRange, core.LimitRangeList, short_names=("limits",)
)
RESOURCE_QUOTA = Kind(
    "", "v1", "ResourceQuota", "resourcequotas", core.ResourceQuota, core.ResourceQuotaList,
    short_names=("quota",), subresources=_subresources("status"),
)  # fmt: skip
REPLICATION_CONTROLLER = Kind(
    "", "v1", "ReplicationController", "replicationcontrollers", core.ReplicationController,
    core.ReplicationControllerList, storage_prefix="controllers", short_names=("rc",),
    subresources=_subresources("status", "scale"), categories=_ALL,
)  # fmt: skip
JOB = Kind(
    "batch", "v1", "Job", "jobs", batch.Job, batch.JobList, subresources=_subresources("status"),
    categories=_ALL,
)  # fmt: skip
ENDPOINT_SLICE = Kind(
    "discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", discovery.EndpointSlice,
    discovery.EndpointSliceList,
)  # fmt: skip
DEVICE_CLASS = Kind(
    "resource.k8s.io", "v1", "DeviceClass", "deviceclasses", devices.DeviceClass, devices.DeviceClassList,
    namespaced=False,
)  # fmt: skip
RESOURCE_CLAIM = Kind(
    "resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", devices.ResourceClaim,
    devices.ResourceClaimList, subresources=_subresources("status"),
)  # fmt: skip
RESOURCE_CLAIM_TEMPLATE = Kind(
    "resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", devices.ResourceClaimTemplate,
    devices.ResourceClaimTemplateList,
)  # fmt: skip
RESOURCE_SLICE = Kind(
    "resource.k8s.io", "v1", "ResourceSlice", "resourceslices", devices.ResourceSlice,
    devices.ResourceSliceList, namespaced=False,
)  # fmt: skip
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", coordination.Lease, coordination.LeaseList)
FLOW_SCHEMA = Kind(
    "flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", flowcontrol.FlowSchema,
    flowcontrol.FlowSchemaList, namespaced=False, subresources=_subresources("status"),
)  # fmt: skip
PRIORITY_LEVEL_CONFIGURATION = Kind(
    "flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations",
    flowcontrol.PriorityLevelConfiguration, flowcontrol.PriorityLevelConfigurationList, namespaced=False,
    subresources=_subresources("status"),
)  # fmt: skip
ROLE = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles", rbac.Role, rbac.RoleList)
ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", rbac.RoleBinding, rbac.RoleBindingList
)
CLUSTER_ROLE = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", rbac.ClusterRole, rbac.ClusterRoleList,
    namespaced=False,
)  # fmt: skip
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", rbac.ClusterRoleBinding,
    rbac.ClusterRoleBindingList, namespaced=False,
)  # fmt: skip
# What a real controller manager and kubelet watch beside: a 404 of one stops those who wait for it.
ENDPOINTS = Kind(
    "", "v1", "Endpoints", "endpoints", core.Endpoints, core.EndpointsList,
    storage_prefix="services/endpoints", short_names=("ep",),
)  # fmt: skip
POD_TEMPLATE = Kind("", "v1", "PodTemplate", "podtemplates", core.PodTemplate, core.PodTemplateList)
CONTROLLER_REVISION = Kind(
    "apps", "v1", "ControllerRevision", "controllerrevisions", apps.ControllerRevision,
    apps.ControllerRevisionList,
)  # fmt: skip
CRON_JOB = Kind(
    "batch", "v1", "CronJob", "cronjobs", batch.CronJob, batch.CronJobList, short_names=("cj",),
    categories=("all",), subresources=_subresources("status"),
)  # fmt: skip
HORIZONTAL_POD_AUTOSCALER = Kind(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers",
    autoscaling.HorizontalPodAutoscaler, autoscaling.HorizontalPodAutoscalerList, short_names=("hpa",),
    categories=("all",), subresources=_subresources("status"),
)  # fmt: skip
HORIZONTAL_POD_AUTOSCALER_V1 = Kind(
    "autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers",
    autoscaling_v1.HorizontalPodAutoscaler, autoscaling_v1.HorizontalPodAutoscalerList, short_names=("hpa",),
    categories=("all",), subresources=_subresources("status"),
)  # fmt: skip
INGRESS = Kind(
    "networking.k8s.io", "v1", "Ingress", "ingresses", networking.Ingress, networking.IngressList,
    storage_prefix="ingress", short_names=("ing",), subresources=_subresources("status"),
)  # fmt: skip
INGRESS_CLASS = Kind(
    "networking.k8s.io", "v1", "IngressClass", "ingressclasses", networking.IngressClass,
    networking.IngressClassList, namespaced=False,
)  # fmt: skip
NETWORK_POLICY = Kind(
    "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", networking.NetworkPolicy,
    networking.NetworkPolicyList, short_names=("netpol",),
)  # fmt: skip
IP_ADDRESS = Kind(
    "networking.k8s.io", "v1", "IPAddress", "ipaddresses", networking.IPAddress, networking.IPAddressList,
    namespaced=False, short_names=("ip",),
)  # fmt: skip
SERVICE_CIDR = Kind(
    "networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", networking.ServiceCIDR,
    networking.ServiceCIDRList, namespaced=False, subresources=_subresources("status"),
)  # fmt: skip
RUNTIME_CLASS = Kind(
    "node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", node.RuntimeClass, node.RuntimeClassList,
    namespaced=False,
)  # fmt: skip
VOLUME_ATTRIBUTES_CLASS = Kind(
    "storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses",
    storage.VolumeAttributesClass, storage.VolumeAttributesClassList, namespaced=False, short_names=("vac",),
)  # fmt: skip

CERTIFICATE_SIGNING_REQUEST = Kind(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests",
    certificates.CertificateSigningRequest, certificates.CertificateSigningRequestList, namespaced=False,
    short_names=("csr",), subresources=_subresources("approval", "status"),
)  # fmt: skip

# Clients list these to resolve a kind that they do not know. The list is always empty.
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
    extensions.CustomResourceDefinition, extensions.CustomResourceDefinitionList, namespaced=False,
    short_names=("crd", "crds"), categories=("api-extensions",), read_only=True,
)  # fmt: skip

KINDS: tuple[Kind[Any], ...] = (
    NAMESPACE,
    NODE,
    POD,
    SERVICE,
    CONFIG_MAP,
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    EVENT,
    EVENTS_EVENT,
    PRIORITY_CLASS,
    POD_DISRUPTION_BUDGET,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
    REPLICA_SET,
    LEASE,
    DEPLOYMENT,
    DAEMON_SET,
    STATEFUL_SET,
    SECRET,
    SERVICE_ACCOUNT,
    LIMIT_RANGE,
    RESOURCE_QUOTA,
    REPLICATION_CONTROLLER,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    JOB,
    ENDPOINT_SLICE,
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    FLOW_SCHEMA,
    PRIORITY_LEVEL_CONFIGURATION,
    ENDPOINTS,
    POD_TEMPLATE,
    CONTROLLER_REVISION,
    CRON_JOB,
    HORIZONTAL_POD_AUTOSCALER,
    HORIZONTAL_POD_AUTOSCALER_V1,
    INGRESS,
    INGRESS_CLASS,
    NETWORK_POLICY,
    IP_ADDRESS,
    SERVICE_CIDR,
    RUNTIME_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    CERTIFICATE_SIGNING_REQUEST,
    CUSTOM_RESOURCE_DEFINITION,
    POD_GROUP,
    WORKLOAD,
)

STORED_AS: dict[AnyKind, Kind[Any]] = {
    EVENTS_EVENT: EVENT,
    HORIZONTAL_POD_AUTOSCALER_V1: HORIZONTAL_POD_AUTOSCALER,
}
"""Kinds that are another's objects in another API: under the other's key, in its form."""

_BY_RESOURCE = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
_BY_KIND = {(kind.api_version, kind.kind): kind for kind in KINDS}
_BY_MESSAGE = {kind.message: kind for kind in KINDS}


def by_resource(group: str, version: str, plural: str) -> Kind[Any] | None:
    """Return the kind of a request's group, version and plural, or None."""
    return _BY_RESOURCE.get((group, version, plural))


ADMISSION_REGISTRATION = "admissionregistration.k8s.io"
NO_ADMISSION_REGISTRATION = "Nominee has no admission webhooks or policies"
"""Why no object of that group can be written."""


def by_kind(api_version: str, kind: str) -> Kind[Any] | None:
    """Return the kind of a manifest's apiVersion and kind, or None."""
    return _BY_KIND.get((api_version, kind))


def of(obj: M) -> Kind[M]:
    """Return the kind of a message.

    Raises:
        KeyError: the message is no top-level object.
    """
    return _BY_MESSAGE[type(obj)]


def by_name(name: str) -> Iterator[Kind[Any]]:
    """Yield the kinds that a user may mean by `po`, `pods`, `pod`, `Pod` or `pods.v1`, core kinds first."""
    wanted = name.lower()
    for kind in KINDS:
        names = {kind.plural, kind.kind.lower(), kind.group_resource.lower(), *kind.short_names}
        if wanted in names:
            yield kind
