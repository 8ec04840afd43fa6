"""The objects of random runs: those that exist from the start, and those that operations create. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.protobuf.message import Message

from nominee.lab.chaos.random.operations import CreateGang, CreatePod, CreateWorkload
from nominee.machinery.wire.files.manifests import parse_object
from nominee.machinery.wire.values.scalars import Json

NAMESPACE = "default"
LIMITED = "limited"
"""The namespace with a quota."""
WORKLOAD_LABEL = "set"
_CLASSES = {"chaos-low": 10, "chaos-high": 1000}
_DRIVER = "gpu.example.com"
_DEVICE_NODES = ("node-0", "node-1")
_DEVICES_PER_NODE = 2
_PROVISIONING = "1s"
_QUOTA = {"pods": "6", "requests.cpu": "6"}
_GRACE_SECONDS = 1
_Object = Mapping[str, Json]


def first_objects() -> list[Message]:
    """Return the objects that exist before the load: classes, devices, a namespace with a quota."""
    found = [
        _object("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
        for name, value in _CLASSES.items()
    ]
    found.append(
        _object(
            "storage.k8s.io/v1",
            "StorageClass",
            "slow",
            provisioner="delayed.nominee.dev",
            parameters={"delay": _PROVISIONING},
            volumeBindingMode="WaitForFirstConsumer",
        )
    )
    selector = {"cel": {"expression": f'device.driver == "{_DRIVER}"'}}
    found.append(_object("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": [selector]}))
    for node in _DEVICE_NODES:
        spec = {
            "driver": _DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(_DEVICES_PER_NODE)],
        }
        found.append(_object("resource.k8s.io/v1", "ResourceSlice", f"{node}-gpus", spec=spec))
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    claim = {"spec": {"devices": {"requests": [request]}}}
    found.append(_object("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu", NAMESPACE, spec=claim))
    found.append(_object("v1", "Namespace", LIMITED))
    found.append(_object("v1", "ResourceQuota", "quota", LIMITED, spec={"hard": _QUOTA}))
    return [parse_object(each, strict=True) for each in found]


def namespace_of(*, limited: bool) -> str:
    """Return the namespace of a pod."""
    return LIMITED if limited else NAMESPACE


def objects_of(create: CreatePod | CreateWorkload | CreateGang) -> list[Message]:
    """Return the objects that an operation creates, in order."""
    match create:
        case CreatePod():
            made = _pod(create)
        case CreateWorkload():
            made = _workload(create)
        case CreateGang():
            made = _gang(create)
    return [parse_object(each, strict=True) for each in made]


def _pod(create: CreatePod) -> Iterable[_Object]:
    spec = _pod_spec(create.cpu, create.priority, create.grace_seconds)
    if create.device:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    if create.volume:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": create.name}}]
        volume = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "slow",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        yield _object("v1", "PersistentVolumeClaim", create.name, NAMESPACE, spec=volume)
    namespace = namespace_of(limited=create.limited)
    yield _object("v1", "Pod", create.name, namespace, labels={"app": "chaos"}, spec=spec)


def _workload(create: CreateWorkload) -> Iterable[_Object]:
    labels = {WORKLOAD_LABEL: create.name}
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    yield _object("policy/v1", "PodDisruptionBudget", create.name, NAMESPACE, spec=budget)
    spec = {
        "replicas": create.replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": _pod_spec(create.cpu, create.priority, _GRACE_SECONDS),
        },
    }
    yield _object("apps/v1", create.kind, create.name, NAMESPACE, spec=spec)


def _gang(create: CreateGang) -> Iterable[_Object]:
    policy = {"schedulingPolicy": {"gang": {"minCount": create.count}}}
    yield _object("scheduling.k8s.io/v1alpha2", "PodGroup", create.name, NAMESPACE, spec=policy)
    for name in members(create.name, create.count):
        spec = _pod_spec(create.cpu, "", _GRACE_SECONDS)
        spec["schedulingGroup"] = {"podGroupName": create.name}
        yield _object("v1", "Pod", name, NAMESPACE, spec=spec)


def members(gang: str, count: int) -> list[str]:
    """Return the names of a gang's pods."""
    return [f"{gang}-{number}" for number in range(count)]


def _pod_spec(cpu: str, priority: str, grace_seconds: int) -> dict[str, Json]:
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Json] = {"terminationGracePeriodSeconds": grace_seconds, "containers": [container]}
    if priority:
        spec["priorityClassName"] = priority
    return spec


def _object(
    version: str,
    kind: str,
    name: str,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    **fields: object,
) -> _Object:
    metadata: dict[str, Json] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
