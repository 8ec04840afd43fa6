"""The columns and cells of each kind's Table, as upstream prints them.

Source: kube-apiserver 1.36, pkg/printers/internalversion (printers.go); tests/golden (api_table.jsonl).
"""

from __future__ import annotations

from typing import Any

from apiserver.objects.cached_object import CachedObject
from apiserver.registry import two_faces
from apiserver.rest import columns_of_more_kinds, columns_of_watched_kinds
from apiserver.rest.layout import AGE as _AGE
from apiserver.rest.layout import NAME as _NAME
from apiserver.rest.layout import Column, Layout
from apiserver.rest.layout import wide as _wide
from apiserver.rest.pod_row import pod_row
from apiserver.rest.row import NONE, Row, age, balancer_addresses, or_none, since
from machinery.api import kinds
from machinery.api.kinds import Kind
from machinery.api.selectors import shown_label_selector

_ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_UNSET = "<unset>"
_UNKNOWN = "<unknown>"


def _node(node: Any, now: float) -> Row:
    ready = [condition.status for condition in node.status.conditions if condition.type == "Ready"]
    status = ["Ready" if ready[-1] == "True" else "NotReady"] if ready else ["Unknown"]
    if node.spec.unschedulable:
        status.append("SchedulingDisabled")
    roles = set()
    for label, value in node.metadata.labels.items():
        if label.startswith(_ROLE_LABEL_PREFIX):
            roles.add(label.removeprefix(_ROLE_LABEL_PREFIX))
        elif label == _ROLE_LABEL:
            roles.add(value)
    addresses: dict[str, str] = {}
    for address in node.status.addresses:
        addresses.setdefault(address.type, address.address)
    info = node.status.nodeInfo
    kernel = info.kernelVersion or _UNKNOWN
    if info.architecture:
        kernel = f"{kernel} ({info.architecture})"
    return Row(
        [
            node.metadata.name,
            ",".join(status),
            ",".join(sorted(role for role in roles if role)) or NONE,
            age(node.metadata, now),
            info.kubeletVersion,
            addresses.get("InternalIP", NONE),
            addresses.get("ExternalIP", NONE),
            info.osImage or _UNKNOWN,
            kernel,
            info.containerRuntimeVersion or _UNKNOWN,
        ]
    )


def _attributes_class(spec: Any) -> str:
    return str(spec.volumeAttributesClassName) if spec.HasField("volumeAttributesClassName") else _UNSET


def _modes(modes: Any) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _claim(claim: Any, now: float) -> Row:
    spec, status = claim.spec, claim.status
    phase = "Terminating" if claim.metadata.HasField("deletionTimestamp") else status.phase
    capacity = modes = ""
    if spec.volumeName:
        modes = _modes(status.accessModes)
        capacity = status.capacity["storage"].string if "storage" in status.capacity else "0"
    storage_class = claim.metadata.annotations.get("volume.beta.kubernetes.io/storage-class", "")
    return Row(
        [
            claim.metadata.name,
            phase,
            spec.volumeName,
            capacity,
            modes,
            storage_class or spec.storageClassName,
            _attributes_class(spec),
            age(claim.metadata, now),
            spec.volumeMode or _UNSET,
        ]
    )


def _volume(volume: Any, now: float) -> Row:
    spec, status = volume.spec, volume.status
    claim = f"{spec.claimRef.namespace}/{spec.claimRef.name}" if spec.HasField("claimRef") else ""
    storage_class = volume.metadata.annotations.get("volume.beta.kubernetes.io/storage-class", "")
    return Row(
        [
            volume.metadata.name,
            spec.capacity["storage"].string if "storage" in spec.capacity else "0",
            _modes(spec.accessModes),
            spec.persistentVolumeReclaimPolicy,
            "Terminating" if volume.metadata.HasField("deletionTimestamp") else status.phase,
            claim,
            storage_class or spec.storageClassName,
            _attributes_class(spec),
            status.reason,
            age(volume.metadata, now),
            spec.volumeMode or _UNSET,
        ]
    )


def _selector(selector: Any) -> str:
    return shown_label_selector(selector)


def _template(obj: Any) -> list[str]:
    containers = obj.spec.template.spec.containers
    return [
        ",".join(container.name for container in containers),
        ",".join(container.image for container in containers),
    ]


def _replica_set(replicas: Any, now: float) -> Row:
    status = replicas.status
    counts = [replicas.spec.replicas, status.replicas, status.readyReplicas]
    return Row(
        [
            replicas.metadata.name,
            *counts,
            age(replicas.metadata, now),
            *_template(replicas),
            _selector(replicas.spec.selector),
        ]
    )


def _deployment(deployment: Any, now: float) -> Row:
    status = deployment.status
    return Row(
        [
            deployment.metadata.name,
            f"{status.readyReplicas}/{deployment.spec.replicas}",
            status.updatedReplicas,
            status.availableReplicas,
            age(deployment.metadata, now),
            *_template(deployment),
            _selector(deployment.spec.selector),
        ]
    )


def _budget(budget: Any, now: float) -> Row:
    def shown(name: str) -> str:
        if not budget.spec.HasField(name):
            return "N/A"
        value = getattr(budget.spec, name)
        return str(value.strVal if value.type == 1 else value.intVal)

    allowed = budget.status.disruptionsAllowed
    limits = [shown("minAvailable"), shown("maxUnavailable")]
    return Row([budget.metadata.name, *limits, allowed, age(budget.metadata, now)])


def _event(event: Any, now: float) -> Row:
    first = since(event.firstTimestamp if event.firstTimestamp.seconds else event.eventTime, now)
    last = since(event.lastTimestamp, now) if event.lastTimestamp.seconds else first
    count = event.count
    if event.HasField("series"):
        last, count = since(event.series.lastObservedTime, now), event.series.count
    elif not count:
        count = 1
    about = event.involvedObject
    subject = f"{about.kind.lower()}/{about.name}" if about.name else about.kind.lower()
    component = event.source.component or event.reportingComponent
    instance = event.source.host or event.reportingInstance
    return Row(
        [
            last,
            event.type,
            event.reason,
            subject,
            about.fieldPath,
            f"{component}, {instance}" if instance else component,
            event.message.strip(),
            first,
            count,
            event.metadata.name,
        ]
    )


def _storage_class(storage_class: Any, now: float) -> Row:
    annotations = storage_class.metadata.annotations
    default = any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)
    name = storage_class.metadata.name
    return Row(
        [
            f"{name} (default)" if default else name,
            storage_class.provisioner,
            storage_class.reclaimPolicy or "Delete",
            storage_class.volumeBindingMode or "Immediate",
            storage_class.allowVolumeExpansion,
            age(storage_class.metadata, now),
        ]
    )


def _lease(lease: Any, now: float) -> Row:
    return Row([lease.metadata.name, lease.spec.holderIdentity, age(lease.metadata, now)])


def _priority_class(priority: Any, now: float) -> Row:
    own = [priority.metadata.name, priority.value, priority.globalDefault]
    return Row([*own, age(priority.metadata, now), priority.preemptionPolicy])


def _namespace(namespace: Any, now: float) -> Row:
    return Row([namespace.metadata.name, namespace.status.phase, age(namespace.metadata, now)])


def _config_map(config: Any, now: float) -> Row:
    count = len(config.data) + len(config.binaryData)
    return Row([config.metadata.name, count, age(config.metadata, now)])


def _secret(secret: Any, now: float) -> Row:
    return Row([secret.metadata.name, secret.type, len(secret.data), age(secret.metadata, now)])


def _name_and_age(obj: Any, now: float) -> Row:
    return Row([obj.metadata.name, age(obj.metadata, now)])


def _service(service: Any, now: float) -> Row:
    spec = service.spec
    internal = spec.clusterIPs[0] if spec.clusterIPs else spec.clusterIP
    ports = [
        f"{port.port}:{port.nodePort}/{port.protocol}" if port.nodePort else f"{port.port}/{port.protocol}"
        for port in spec.ports
    ]
    return Row(
        [
            service.metadata.name,
            spec.type,
            internal or NONE,
            _external(service),
            ",".join(ports) or NONE,
            age(service.metadata, now),
            ",".join(f"{key}={value}" for key, value in sorted(spec.selector.items())) or NONE,
        ]
    )


def _external(service: Any) -> str:
    spec = service.spec
    if spec.type == "ExternalName":
        return spec.externalName or NONE
    if spec.type == "LoadBalancer":
        found = balancer_addresses(service.status.loadBalancer.ingress)
        return ",".join([*found, *spec.externalIPs]) or "<pending>"
    return ",".join(spec.externalIPs) or NONE


def _other(obj: Any, now: float) -> Row:
    from machinery.wire.scalars import format_time

    del now
    return Row([obj.metadata.name, format_time(obj.metadata.creationTimestamp.seconds)])


_LAYOUTS: dict[tuple[str, str], Layout] = {
    ("", "Pod"): Layout(
        (
            _NAME,
            Column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
            Column("Status", "The aggregate status of the containers in this pod."),
            Column(
                "Restarts",
                "The number of times the containers in this pod have been restarted and when the last"
                " container in this pod has restarted.",
            ),
            _AGE,
            _wide("IP", "podstatus-v1#podIP"),
            _wide("Node", "podspec-v1#nodeName"),
            _wide("Nominated Node", "podstatus-v1#nominatedNodeName"),
            _wide("Readiness Gates", "podspec-v1#readinessGates"),
        ),
        pod_row,
    ),
    ("", "Node"): Layout(
        (
            _NAME,
            Column("Status", "The status of the node"),
            Column("Roles", "The roles of the node"),
            _AGE,
            Column("Version", "nodesysteminfo-v1#kubeletVersion"),
            _wide("Internal-IP", "nodestatus-v1#addresses"),
            _wide("External-IP", "nodestatus-v1#addresses"),
            _wide("OS-Image", "nodesysteminfo-v1#osImage"),
            _wide("Kernel-Version", "nodesysteminfo-v1#kernelVersion"),
            _wide("Container-Runtime", "nodesysteminfo-v1#containerRuntimeVersion"),
        ),
        _node,
    ),
    ("", "PersistentVolumeClaim"): Layout(
        (
            _NAME,
            Column("Status", "persistentvolumeclaimstatus-v1#phase"),
            Column("Volume", "persistentvolumeclaimspec-v1#volumeName"),
            Column("Capacity", "persistentvolumeclaimstatus-v1#capacity"),
            Column("Access Modes", "persistentvolumeclaimstatus-v1#accessModes"),
            Column("StorageClass", "StorageClass of the pvc"),
            Column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
            _AGE,
            _wide("VolumeMode", "persistentvolumeclaimspec-v1#volumeMode"),
        ),
        _claim,
    ),
    ("", "PersistentVolume"): Layout(
        (
            _NAME,
            Column("Capacity", "persistentvolumespec-v1#capacity"),
            Column("Access Modes", "persistentvolumespec-v1#accessModes"),
            Column("Reclaim Policy", "persistentvolumespec-v1#persistentVolumeReclaimPolicy"),
            Column("Status", "persistentvolumestatus-v1#phase"),
            Column("Claim", "persistentvolumespec-v1#claimRef"),
            Column("StorageClass", "StorageClass of the pv"),
            Column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
            Column("Reason", "persistentvolumestatus-v1#reason"),
            _AGE,
            _wide("VolumeMode", "persistentvolumespec-v1#volumeMode"),
        ),
        _volume,
    ),
    ("apps", "ReplicaSet"): Layout(
        (
            _NAME,
            Column("Desired", "replicasetspec-apps-v1#replicas", "integer"),
            Column("Current", "replicasetstatus-apps-v1#replicas", "integer"),
            Column("Ready", "replicasetstatus-apps-v1#readyReplicas", "integer"),
            _AGE,
            _wide("Containers", "Names of each container in the template."),
            _wide("Images", "Images referenced by each container in the template."),
            _wide("Selector", "replicasetspec-apps-v1#selector"),
        ),
        _replica_set,
    ),
    ("apps", "Deployment"): Layout(
        (
            _NAME,
            Column("Ready", "Number of the pod with ready state"),
            Column("Up-to-date", "deploymentstatus-apps-v1#updatedReplicas"),
            Column("Available", "deploymentstatus-apps-v1#availableReplicas"),
            _AGE,
            _wide("Containers", "Names of each container in the template."),
            _wide("Images", "Images referenced by each container in the template."),
            _wide("Selector", "deploymentspec-apps-v1#selector"),
        ),
        _deployment,
    ),
    ("policy", "PodDisruptionBudget"): Layout(
        (
            _NAME,
            Column("Min Available", "The minimum number of pods that must be available."),
            Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
            Column(
                "Allowed Disruptions",
                "Calculated number of pods that may be disrupted at this time.",
                "integer",
            ),
            _AGE,
        ),
        _budget,
    ),
    ("", "Event"): Layout(
        (
            Column("Last Seen", "event-v1#lastTimestamp"),
            Column("Type", "event-v1#type"),
            Column("Reason", "event-v1#reason"),
            Column("Object", "event-v1#involvedObject"),
            _wide("Subobject", "objectreference-v1#fieldPath"),
            _wide("Source", "event-v1#source"),
            Column("Message", "event-v1#message"),
            _wide("First Seen", "event-v1#firstTimestamp"),
            _wide("Count", "event-v1#count"),
            Column("Name", "objectmeta-meta-v1#name", format="name", wide=True),
        ),
        _event,
    ),
    ("coordination.k8s.io", "Lease"): Layout(
        (_NAME, Column("Holder", "leasespec-coordination-v1#holderIdentity"), _AGE), _lease
    ),
    ("scheduling.k8s.io", "PriorityClass"): Layout(
        (
            _NAME,
            Column("Value", "priorityclass-scheduling-v1#value", "integer"),
            Column("Global-Default", "priorityclass-scheduling-v1#globalDefault", "boolean"),
            _AGE,
            Column("PreemptionPolicy", "priorityclass-scheduling-v1#preemptionPolicy"),
        ),
        _priority_class,
    ),
    ("", "Namespace"): Layout((_NAME, Column("Status", "The status of the namespace"), _AGE), _namespace),
    ("storage.k8s.io", "StorageClass"): Layout(
        (
            _NAME,
            Column("Provisioner", "storageclass-storage-v1#provisioner"),
            Column("ReclaimPolicy", "storageclass-storage-v1#reclaimPolicy"),
            Column("VolumeBindingMode", "storageclass-storage-v1#volumeBindingMode"),
            Column("AllowVolumeExpansion", "storageclass-storage-v1#allowVolumeExpansion"),
            _AGE,
        ),
        _storage_class,
    ),
    ("", "Service"): Layout(
        (
            _NAME,
            Column("Type", "servicespec-v1#type"),
            Column("Cluster-IP", "servicespec-v1#clusterIP"),
            Column("External-IP", "servicespec-v1#externalIPs"),
            Column("Port(s)", "servicespec-v1#ports"),
            _AGE,
            _wide("Selector", "servicespec-v1#selector"),
        ),
        _service,
    ),
    ("", "Secret"): Layout(
        (_NAME, Column("Type", "secret-v1#type"), Column("Data", "secret-v1#data"), _AGE), _secret
    ),
    ("", "ServiceAccount"): Layout((_NAME, _AGE), _name_and_age),
    ("", "ConfigMap"): Layout((_NAME, Column("Data", "configmap-v1#data"), _AGE), _config_map),
}
_LAYOUTS |= columns_of_more_kinds.LAYOUTS
_LAYOUTS |= columns_of_watched_kinds.LAYOUTS
_OTHERS = Layout((_NAME, Column("Created At", "objectmeta-meta-v1#creationTimestamp", "date")), _other)


def _layout(kind: Kind[Any]) -> Layout:
    kind = kinds.STORED_AS.get(kind, kind)
    return _LAYOUTS.get((kind.group, kind.kind), _OTHERS)


def columns_of(kind: Kind[Any]) -> list[dict[str, Any]]:
    """The columnDefinitions of a kind's Table."""
    layout = _layout(kind)
    if not layout.definitions:
        layout.definitions.extend(column.definition() for column in layout.columns)
    return layout.definitions


def row_of(found: CachedObject, now: float) -> Row:
    """An object's cells at a time in seconds since the epoch."""
    return _layout(found.kind).row(two_faces.as_stored(found.kind, found.message), now)


__all__ = ["Column", "Layout", "Row", "columns_of", "or_none", "row_of"]
