"""Columns of workloads, endpoints, CSI, devices, quotas and access (kube-apiserver 1.36, printers.go)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.rest.layout import AGE, NAME, Column, Layout, wide
from apiserver.rest.row import NONE, Row, age
from machinery.api.selectors import shown_label_selector
from machinery.printing.durations import human_duration

_UNSET = "<unset>"
_SHOWN_MAX = 3
_CONTAINERS = (
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def _template(obj: Any) -> list[str]:
    containers = obj.spec.template.spec.containers
    return [",".join(each.name for each in containers), ",".join(each.image for each in containers)]


def _selector(obj: Any) -> str:
    return shown_label_selector(obj.spec.selector)


def _name_and_age(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, age(obj.metadata, now)])


def _replication_controller(obj: Any, now: float) -> Row:
    counts = [obj.spec.replicas, obj.status.replicas, obj.status.readyReplicas]
    own = [obj.metadata.name, *counts, age(obj.metadata, now)]
    return Row([*own, *_template(obj), _labels(obj.spec.selector)])


def _daemon_set(obj: Any, now: float) -> Row:
    status = obj.status
    counts = [
        status.desiredNumberScheduled,
        status.currentNumberScheduled,
        status.numberReady,
        status.updatedNumberScheduled,
        status.numberAvailable,
    ]
    nodes = _labels(obj.spec.template.spec.nodeSelector)
    own = [obj.metadata.name, *counts, nodes, age(obj.metadata, now)]
    return Row([*own, *_template(obj), _selector(obj)])


def _stateful_set(obj: Any, now: float) -> Row:
    ready = f"{obj.status.readyReplicas}/{obj.spec.replicas}"
    return Row([obj.metadata.name, ready, age(obj.metadata, now), *_template(obj)])


def _job_status(job: Any) -> str:
    true = {condition.type for condition in job.status.conditions if condition.status == "True"}
    if "Complete" in true:
        return "Complete"
    if "Failed" in true:
        return "Failed"
    if job.metadata.HasField("deletionTimestamp"):
        return "Terminating"
    found = (name for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if name in true)
    return next(found, "Running")


def _job(job: Any, now: float) -> Row:
    spec, status = job.spec, job.status
    if spec.HasField("completions"):
        completions = f"{status.succeeded}/{spec.completions}"
    elif spec.parallelism > 1:
        completions = f"{status.succeeded}/1 of {spec.parallelism}"
    else:
        completions = f"{status.succeeded}/1"
    took = ""
    if status.HasField("startTime"):
        end = status.completionTime.seconds if status.HasField("completionTime") else now
        took = human_duration(end - status.startTime.seconds)
    own = [job.metadata.name, _job_status(job), completions, took, age(job.metadata, now)]
    return Row([*own, *_template(job), _selector(job)])


def _some(values: Sequence[str]) -> str:
    """The first of a list, and how many more there are."""
    shown = ",".join(values[:_SHOWN_MAX])
    if len(values) > _SHOWN_MAX:
        return f"{shown} + {len(values) - _SHOWN_MAX} more..."
    return shown or _UNSET


def _endpoint_slice(obj: Any, now: float) -> Row:
    ports = [
        str(port.port) if port.HasField("port") else port.name if port.HasField("name") else "*"
        for port in obj.ports
    ]
    addresses = [address for endpoint in obj.endpoints for address in endpoint.addresses]
    own = [obj.metadata.name, obj.addressType, _some(ports), _some(addresses)]
    return Row([*own, age(obj.metadata, now)])


def _csi_node(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, len(obj.spec.drivers), age(obj.metadata, now)])


def _csi_driver(obj: Any, now: float) -> Row:
    spec = obj.spec
    audiences = ",".join(each.audience for each in spec.tokenRequests) if spec.tokenRequests else _UNSET
    return Row(
        [
            obj.metadata.name,
            spec.attachRequired if spec.HasField("attachRequired") else True,
            spec.podInfoOnMount,
            spec.storageCapacity,
            audiences,
            spec.requiresRepublish,
            ",".join(spec.volumeLifecycleModes) or NONE,
            age(obj.metadata, now),
        ]
    )


def _csi_storage_capacity(obj: Any, now: float) -> Row:
    del now
    capacity = obj.capacity.string if obj.HasField("capacity") else _UNSET
    return Row([obj.metadata.name, obj.storageClassName, capacity])


def _volume_attachment(obj: Any, now: float) -> Row:
    spec = obj.spec
    own = [obj.metadata.name, spec.attacher, spec.source.persistentVolumeName, spec.nodeName]
    return Row([*own, obj.status.attached, age(obj.metadata, now)])


def _resource_quota(obj: Any, now: float) -> Row:
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(obj.status.hard):
        used = obj.status.used[name].string if name in obj.status.used else "0"
        text = f"{name}: {used}/{obj.status.hard[name].string}"
        (limits if name.startswith("limits.") else requests).append(text)
    return Row([obj.metadata.name, ", ".join(requests), ", ".join(limits), age(obj.metadata, now)])


def _resource_claim(obj: Any, now: float) -> Row:
    deleted = obj.metadata.HasField("deletionTimestamp")
    states = ["deleted"] if deleted else []
    if obj.status.HasField("allocation"):
        states.append("allocated")
        if obj.status.reservedFor:
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return Row([obj.metadata.name, ",".join(states), age(obj.metadata, now)])


def _resource_slice(obj: Any, now: float) -> Row:
    spec = obj.spec
    node = spec.nodeName if spec.HasField("nodeName") else _UNSET
    return Row([obj.metadata.name, node, spec.driver, spec.pool.name, age(obj.metadata, now)])


def _binding(obj: Any, now: float) -> Row:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.subjects:
        name = f"{subject.namespace}/{subject.name}" if subject.kind == "ServiceAccount" else subject.name
        subjects.setdefault(subject.kind, []).append(name)
    listed = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    role = f"{obj.roleRef.kind}/{obj.roleRef.name}"
    return Row([obj.metadata.name, role, age(obj.metadata, now), *listed])


def _flow_schema(obj: Any, now: float) -> Row:
    spec = obj.spec
    method = spec.distinguisherMethod.type if spec.HasField("distinguisherMethod") else NONE
    dangling = [each.status for each in obj.status.conditions if each.type == "Dangling"]
    own = [obj.metadata.name, spec.priorityLevelConfiguration.name, spec.matchingPrecedence, method]
    return Row([*own, age(obj.metadata, now), dangling[-1] if dangling else "?"])


def _priority_level(obj: Any, now: float) -> Row:
    spec = obj.spec
    shares: Any = NONE
    queues: list[Any] = [NONE, NONE, NONE]
    if spec.HasField("limited"):
        shares = spec.limited.nominalConcurrencyShares
        if spec.limited.limitResponse.HasField("queuing"):
            found = spec.limited.limitResponse.queuing
            queues = [found.queues, found.handSize, found.queueLengthLimit]
    return Row([obj.metadata.name, spec.type, shares, *queues, age(obj.metadata, now)])


def _binding_layout(schema: str) -> Layout:
    return Layout(
        (
            NAME,
            Column("Role", f"{schema}#roleRef"),
            AGE,
            wide("Users", "Users in the roleBinding"),
            wide("Groups", "Groups in the roleBinding"),
            wide("ServiceAccounts", "ServiceAccounts in the roleBinding"),
        ),
        _binding,
    )


LAYOUTS: dict[tuple[str, str], Layout] = {
    ("", "ReplicationController"): Layout(
        (
            NAME,
            Column("Desired", "replicationcontrollerspec-v1#replicas", "integer"),
            Column("Current", "replicationcontrollerstatus-v1#replicas", "integer"),
            Column("Ready", "replicationcontrollerstatus-v1#readyReplicas", "integer"),
            AGE,
            *_CONTAINERS,
            wide("Selector", "replicationcontrollerspec-v1#selector"),
        ),
        _replication_controller,
    ),
    ("apps", "DaemonSet"): Layout(
        (
            NAME,
            Column("Desired", "daemonsetstatus-apps-v1#desiredNumberScheduled", "integer"),
            Column("Current", "daemonsetstatus-apps-v1#currentNumberScheduled", "integer"),
            Column("Ready", "daemonsetstatus-apps-v1#numberReady", "integer"),
            Column("Up-to-date", "daemonsetstatus-apps-v1#updatedNumberScheduled", "integer"),
            Column("Available", "daemonsetstatus-apps-v1#numberAvailable", "integer"),
            Column("Node Selector", "podspec-v1#nodeSelector"),
            AGE,
            *_CONTAINERS,
            wide("Selector", "daemonsetspec-apps-v1#selector"),
        ),
        _daemon_set,
    ),
    ("apps", "StatefulSet"): Layout(
        (NAME, Column("Ready", "Number of the pod with ready state"), AGE, *_CONTAINERS), _stateful_set
    ),
    ("batch", "Job"): Layout(
        (
            NAME,
            Column("Status", "Status of the job."),
            Column("Completions", "jobstatus-batch-v1#succeeded"),
            Column("Duration", "Time required to complete the job."),
            AGE,
            *_CONTAINERS,
            wide("Selector", "jobspec-batch-v1#selector"),
        ),
        _job,
    ),
    ("discovery.k8s.io", "EndpointSlice"): Layout(
        (
            NAME,
            Column("AddressType", "endpointslice-discovery-v1#addressType"),
            Column("Ports", "endpointslice-discovery-v1#ports"),
            Column("Endpoints", "endpointslice-discovery-v1#endpoints"),
            AGE,
        ),
        _endpoint_slice,
    ),
    ("storage.k8s.io", "CSINode"): Layout(
        (
            NAME,
            Column(
                "Drivers", "Drivers indicates the number of CSI drivers registered on the node", "integer"
            ),
            AGE,
        ),
        _csi_node,
    ),
    ("storage.k8s.io", "CSIDriver"): Layout(
        (
            NAME,
            Column("AttachRequired", "csidriverspec-storage-v1#attachRequired", "boolean"),
            Column("PodInfoOnMount", "csidriverspec-storage-v1#podInfoOnMount", "boolean"),
            Column("StorageCapacity", "csidriverspec-storage-v1#storageCapacity", "boolean"),
            Column("TokenRequests", "csidriverspec-storage-v1#tokenRequests"),
            Column("RequiresRepublish", "csidriverspec-storage-v1#requiresRepublish", "boolean"),
            Column("Modes", "csidriverspec-storage-v1#volumeLifecycleModes"),
            AGE,
        ),
        _csi_driver,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): Layout(
        (
            NAME,
            Column("StorageClassName", "csistoragecapacity-storage-v1#storageClassName"),
            Column("Capacity", "csistoragecapacity-storage-v1#capacity"),
        ),
        _csi_storage_capacity,
    ),
    ("storage.k8s.io", "VolumeAttachment"): Layout(
        (
            NAME,
            Column("Attacher", "volumeattachmentspec-storage-v1#attacher", format="name"),
            Column("PV", "volumeattachmentsource-storage-v1#persistentVolumeName"),
            Column("Node", "volumeattachmentspec-storage-v1#nodeName"),
            Column("Attached", "volumeattachmentstatus-storage-v1#attached", "boolean"),
            AGE,
        ),
        _volume_attachment,
    ),
    ("", "ResourceQuota"): Layout(
        (
            NAME,
            Column(
                "Request",
                "Request represents a minimum amount of cpu/memory that a container may consume.",
            ),
            Column(
                "Limit",
                "Limits control the maximum amount of cpu/memory that a container may use"
                " independent of contention on the node.",
            ),
            AGE,
        ),
        _resource_quota,
    ),
    ("resource.k8s.io", "DeviceClass"): Layout((NAME, AGE), _name_and_age),
    ("resource.k8s.io", "ResourceClaimTemplate"): Layout((NAME, AGE), _name_and_age),
    ("resource.k8s.io", "ResourceClaim"): Layout(
        (
            NAME,
            Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
            AGE,
        ),
        _resource_claim,
    ),
    ("resource.k8s.io", "ResourceSlice"): Layout(
        (
            NAME,
            Column("Node", "resourceslicespec-resource-v1#nodeName"),
            Column("Driver", "resourceslicespec-resource-v1#driver"),
            Column("Pool", "resourcepool-resource-v1#name"),
            AGE,
        ),
        _resource_slice,
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): _binding_layout("rolebinding-rbac-v1"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _binding_layout("clusterrolebinding-rbac-v1"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): Layout(
        (
            NAME,
            Column("PriorityLevel", "prioritylevelconfigurationreference-flowcontrol-v1#name"),
            Column("MatchingPrecedence", "flowschemaspec-flowcontrol-v1#matchingPrecedence", "integer"),
            Column("DistinguisherMethod", "flowschemaspec-flowcontrol-v1#distinguisherMethod"),
            AGE,
            Column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
        ),
        _flow_schema,
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): Layout(
        (
            NAME,
            Column("Type", "prioritylevelconfigurationspec-flowcontrol-v1#type"),
            Column(
                "NominalConcurrencyShares",
                "limitedprioritylevelconfiguration-flowcontrol-v1#nominalConcurrencyShares",
            ),
            Column("Queues", "queuingconfiguration-flowcontrol-v1#queues"),
            Column("HandSize", "queuingconfiguration-flowcontrol-v1#handSize"),
            Column("QueueLengthLimit", "queuingconfiguration-flowcontrol-v1#queueLengthLimit"),
            AGE,
        ),
        _priority_level,
    ),
}
