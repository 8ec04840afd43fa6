"""The usage of a ResourceQuota by one object, and the objects that a quota counts.

Shared by the API server, which charges, and the controller, which recounts. Source: Kubernetes 1.36's
quota evaluators (pkg/quota/v1/evaluator/core).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core
from nominee.machinery.resources import resource_lists as amounts
from nominee.machinery.resources.pod_resources import has_pod_level_resources, is_extended
from nominee.machinery.resources.qos import BEST_EFFORT, qos_class
from nominee.machinery.resources.quantity import Quantity
from nominee.machinery.resources.resource_lists import Amounts

Obj = Any
"""An object of the kind that is named beside it."""

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_REQUIRED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_OLD_NAMES = (
    kinds.CONFIG_MAP,
    kinds.RESOURCE_QUOTA,
    kinds.REPLICATION_CONTROLLER,
    kinds.SECRET,
    kinds.SERVICE,
    kinds.PERSISTENT_VOLUME_CLAIM,
)
"""Kinds that are counted under their plural, too."""
_CLASS_PART = ".storageclass.storage.k8s.io/"
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_DEVICES_OF_ALL = 32
"""What a claim for all devices of a class may get at most."""
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def count_name(kind: AnyKind) -> str:
    """`count/pods`, `count/deployments.apps`."""
    return f"count/{kind.group_resource}"


def is_measured(kind: AnyKind, name: str) -> bool:
    """Return whether objects of a kind use such a resource."""
    if name == count_name(kind):
        return True
    if kind is kinds.POD:
        base = name.removeprefix("requests.")
        return (
            name == "pods"
            or name in _COMPUTE
            or name.removeprefix("limits.") in _COMPUTE
            or base in _COMPUTE
            or base.startswith("hugepages-")
            or (base != name and is_extended(base))
        )
    if kind is kinds.PERSISTENT_VOLUME_CLAIM:
        return name in ("persistentvolumeclaims", "requests.storage") or _CLASS_PART in name
    if kind is kinds.SERVICE:
        return name in ("services", "services.nodeports", "services.loadbalancers")
    if kind is kinds.RESOURCE_CLAIM:
        return name.endswith(_DEVICES)
    return kind in _OLD_NAMES and name == kind.plural


def usage(kind: AnyKind, obj: Obj, now: float) -> Amounts:
    """Return all that one object uses; `now` in seconds since the epoch."""
    counted = _one(count_name(kind))
    if kind in _OLD_NAMES:
        counted |= _one(kind.plural)
    if kind is kinds.POD:
        return counted if is_over(obj, now) else counted | _pod(obj)
    more = _MEASURES.get(kind)
    return counted | more(obj) if more is not None else counted


def counts(quota: core.ResourceQuota, kind: AnyKind, obj: Obj) -> bool:
    """Return whether a quota's scopes match an object."""
    return all(_in_scope(*scope, kind, obj) for scope in _scopes(quota))


def may_recount(kind: AnyKind, old: Obj, new: Obj, now: float) -> bool:
    """Report whether an update of an object may change the usage that quotas count.

    Source: Kubernetes 1.36, Handles and RequiresQuotaReplenish of the evaluators of pods and claims, and
    DefaultUpdateFilter.
    """
    if kind is kinds.POD:
        return (
            is_over(old, now) != is_over(new, now)
            or _is_terminating(old) != _is_terminating(new)
            or _actual(old) != _actual(new)
        )
    if kind is kinds.PERSISTENT_VOLUME_CLAIM:
        return _attributes_classes(old) != _attributes_classes(new) or _claim(old) != _claim(new)
    return usage(kind, old, now) != usage(kind, new, now)


def missing_resources(pod: core.Pod, names: Iterable[str]) -> str:
    """Return the resources that quotas require a pod to specify: `cpu for: c1,c2; memory for: c1`, or "".

    None are where any resource is set for the pod as a whole. Source: Kubernetes 1.36, Constraints of the
    evaluator of pods.
    """
    required = [name for name in names if name in _REQUIRED]
    if not required or has_pod_level_resources(pod):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*pod.spec.containers, *pod.spec.initContainers):
        resources = container.resources
        said = _computed(amounts.read(resources.requests), amounts.read(resources.limits))
        for name in required:
            if name not in said:
                missing.setdefault(name, set()).add(container.name)
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def is_over(pod: core.Pod, now: float) -> bool:
    """Return whether a pod has ended, or should have: it still counts among the objects (QuotaV1Pod).

    A pod that is stuck in its deletion, as on a lost node, must not keep others from taking its place. As
    upstream, the grace period counts from the deletionTimestamp, which already includes it.
    """
    if pod.status.phase in ("Failed", "Succeeded"):
        return True
    metadata = pod.metadata
    if not metadata.HasField("deletionTimestamp") or not metadata.HasField("deletionGracePeriodSeconds"):
        return False
    return now > metadata.deletionTimestamp.seconds + metadata.deletionGracePeriodSeconds


def _one(name: str, number: int = 1) -> Amounts:
    return {name: Quantity.of(number)}


def _computed(requests: Amounts, limits: Amounts) -> Amounts:
    found: Amounts = {}
    for name, quantity in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = found[f"requests.{name}"] = quantity
        elif is_extended(name):
            found[f"requests.{name}"] = quantity
    for name in _COMPUTE:
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    return found


def _pod(pod: core.Pod) -> Amounts:
    """Return the usage of a pod; during a resize that is the most of old and new resources (PodUsageFunc)."""
    requests = amounts.of_pod(pod, "requests", overhead=True, use_status=True)
    limits = amounts.of_pod(pod, "limits", overhead=True, use_status=True)
    return _one("pods") | _computed(requests, limits)


def _claim(claim: core.PersistentVolumeClaim) -> Amounts:
    found: Amounts = {}
    name = claim.metadata.annotations.get(_CLASS_ANNOTATION) or claim.spec.storageClassName
    if name:
        found |= _one(f"{name}{_CLASS_PART}persistentvolumeclaims")
    requests = amounts.read(claim.spec.resources.requests)
    if "storage" in requests:
        size = requests["storage"]
        allocated = amounts.read(claim.status.allocatedResources).get("storage", size)
        found["requests.storage"] = max(size, allocated)
        if name:
            found[f"{name}{_CLASS_PART}requests.storage"] = found["requests.storage"]
    return found


def _service(service: core.Service) -> Amounts:
    spec = service.spec
    ports, balancers = 0, 0
    if spec.type == "NodePort":
        ports = len(spec.ports)
    elif spec.type == "LoadBalancer":
        balancers, ports = 1, len(spec.ports)
        if spec.HasField("allocateLoadBalancerNodePorts") and not spec.allocateLoadBalancerNodePorts:
            ports = sum(1 for port in spec.ports if port.nodePort)
    return _one("services.nodeports", ports) | _one("services.loadbalancers", balancers)


def _devices(claim: Obj) -> Amounts:
    found: Amounts = {}
    for request in claim.spec.devices.requests:
        # Of several that will do any may be taken: each class counts with the most it may give.
        asked: dict[str, int] = {}
        for each in (request.exactly, *request.firstAvailable):
            if each.deviceClassName:
                number = _DEVICES_OF_ALL if each.allocationMode == "All" else each.count
                asked[each.deviceClassName] = max(number, asked.get(each.deviceClassName, 0))
        for name, number in asked.items():
            found = amounts.add(found, _one(f"{name}{_DEVICES}", number))
    return found


_MEASURES: dict[AnyKind, Callable[[Obj], Amounts]] = {
    kinds.PERSISTENT_VOLUME_CLAIM: _claim,
    kinds.SERVICE: _service,
    kinds.RESOURCE_CLAIM: _devices,
}


def _scopes(quota: core.ResourceQuota) -> list[tuple[str, str, list[str]]]:
    selector = quota.spec.scopeSelector.matchExpressions
    return [
        *((name, "Exists", []) for name in quota.spec.scopes),
        *((each.scopeName, each.operator, list(each.values)) for each in selector),
    ]


def _in_scope(scope: str, operator: str, values: list[str], kind: AnyKind, obj: Obj) -> bool:
    if kind is kinds.PERSISTENT_VOLUME_CLAIM and scope == "VolumeAttributesClass":
        return any(_says(operator, values, name) for name in _attributes_classes(obj) or {""})
    if kind is not kinds.POD:
        return False
    pod: core.Pod = obj
    if scope == "PriorityClass":
        return _says(operator, values, pod.spec.priorityClassName)
    if scope in ("Terminating", "NotTerminating"):
        return _is_terminating(pod) == (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return (qos_class(pod) == BEST_EFFORT) == (scope == "BestEffort")
    return scope == "CrossNamespacePodAffinity" and any(
        term.namespaces or term.HasField("namespaceSelector") for term in _affinity_terms(pod.spec.affinity)
    )


def _is_terminating(pod: core.Pod) -> bool:
    return pod.spec.HasField("activeDeadlineSeconds") and pod.spec.activeDeadlineSeconds >= 0


def _actual(pod: core.Pod) -> dict[str, core.ResourceRequirements]:
    """Return the resources in the statuses of the containers, by name."""
    rows = (*pod.status.containerStatuses, *pod.status.initContainerStatuses)
    return {row.name: row.resources for row in rows if row.HasField("resources")}


def _attributes_classes(claim: core.PersistentVolumeClaim) -> set[str]:
    """Return the names of the VolumeAttributesClasses that a claim refers to."""
    return {
        claim.spec.volumeAttributesClassName,
        claim.status.currentVolumeAttributesClassName,
        claim.status.modifyVolumeStatus.targetVolumeAttributesClassName,
    } - {""}


def _says(operator: str, values: list[str], name: str) -> bool:
    if operator == "Exists":
        return bool(name)
    if operator == "DoesNotExist":
        return not name
    return (name in values) == (operator == "In") if name else operator == "NotIn"


def _affinity_terms(affinity: core.Affinity) -> Iterable[core.PodAffinityTerm]:
    for each in (affinity.podAffinity, affinity.podAntiAffinity):
        yield from each.requiredDuringSchedulingIgnoredDuringExecution
        for weighted in each.preferredDuringSchedulingIgnoredDuringExecution:
            yield weighted.podAffinityTerm
