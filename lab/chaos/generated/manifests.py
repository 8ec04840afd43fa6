"""The manifests and steps of generated scenarios, in short forms. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nominee.machinery.wire.values.scalars import Json

Document = dict[str, Json]
GROUPS = {
    "PriorityClass": "scheduling.k8s.io/v1",
    "PodGroup": "scheduling.k8s.io/v1alpha2",
    "StorageClass": "storage.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "ReplicaSet": "apps/v1",
    "Deployment": "apps/v1",
    "DeviceClass": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
}
"""The API groups of kinds that are not of the core."""


def manifest(kind: str, name: str, namespace: str = "", labels: Document | None = None, **rest: Json) -> Json:
    """Return a manifest."""
    metadata: Document = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": GROUPS.get(kind, "v1"), "kind": kind, "metadata": metadata, **rest}


def pod_spec(cpu: str, **rest: Json) -> Document:
    """Return the spec of a pod with one container."""
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {"terminationGracePeriodSeconds": 1, **rest, "containers": [container]}


def workload(kind: str, name: str, replicas: int, spec: Json, labels: Document | None = None) -> Json:
    """Return a ReplicaSet or a Deployment whose pods have the label `app`, and these."""
    app = {"app": name}
    template = {"metadata": {"labels": app | (labels or {})}, "spec": spec}
    selector = {"matchLabels": app}
    return manifest(kind, name, spec={"replicas": replicas, "selector": selector, "template": template})


def budget(name: str, **limit: Json) -> Json:
    """Return a disruption budget of the pods with the label `app` of this name."""
    return manifest("PodDisruptionBudget", name, spec={**limit, "selector": {"matchLabels": {"app": name}}})


def apply(*manifests: Json) -> Json:
    """Return a step that creates objects."""
    return {"apply": list(manifests)}


def patch(kind: str, name: str, change: Json, **rest: Json) -> Json:
    """Return a step that patches an object."""
    return {"patch": {"kind": kind, "name": name, **rest, "patch": change}}


def delete(kind: str, name: str, **rest: Json) -> Json:
    """Return a step that deletes an object."""
    return {"delete": {"kind": kind, "name": name, **rest}}


def wait(seconds: float, kind: str, **condition: Json) -> Json:
    """Return a step that waits for an object, for so long at most."""
    return {"wait": {"object": {"kind": kind, **condition}, "seconds": seconds}}


def ready(seconds: float, pod: str) -> Json:
    """Return a step that waits until a pod runs."""
    return wait(seconds, "Pod", name=pod, condition="Ready=True")


def absence(pod: str, seconds: float = 4, **rest: Json) -> Json:
    """Return a step that waits until a pod is gone."""
    return wait(seconds, "Pod", name=pod, exists=False, **rest)


def resize(pod: str, cpu: str) -> Json:
    """Return a step that changes the cpu that a pod requests."""
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return patch("Pod", pod, {"spec": {"containers": containers}}, subresource="resize")


def scale(kind: str, name: str, replicas: int) -> Json:
    """Return a step that changes the number of replicas."""
    return patch(kind, name, {"spec": {"replicas": replicas}})


def options_of(component: str, options: Mapping[str, Json]) -> Json:
    """Return a step that restarts a component with other options."""
    return {"restart": {"component": component, **options}}
