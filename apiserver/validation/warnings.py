"""What a writer should know of an object that is valid, a function a kind (kube-apiserver 1.36).

Pods and their templates have `pod_warnings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from apiserver.validation import addresses, pod_warnings
from apiserver.validation.service_addresses import is_headless
from machinery.api import kinds
from machinery.api.kinds import Kind
from machinery.api.pb import apps, core, discovery, storage

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options"
_HINTS_ANNOTATION = "service.kubernetes.io/topology-aware-hints"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_OUR_SLICES = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_VOLUME_TYPES = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}


def of(kind: Kind[Any], new: Any, old: Any | None) -> tuple[str, ...]:
    """Empty for most kinds; `old` is None on create."""
    found = _TABLE.get(kind)
    return tuple(found(new, old)) if found is not None else ()


def _node(node: core.Node, _: core.Node | None) -> Iterator[str]:
    if node.spec.HasField("configSource"):
        yield "spec.configSource: the feature is no longer supported"
    if node.spec.externalID:
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, cidr in enumerate(node.spec.podCIDRs):
        yield from addresses.range_warnings(f"spec.podCIDRs[{index}]", cidr)


def _class_annotation(obj: core.PersistentVolume | core.PersistentVolumeClaim) -> Iterator[str]:
    if _CLASS_ANNOTATION in obj.metadata.annotations:
        text = 'deprecated since v1.8; use "storageClassName" attribute instead'
        yield f"metadata.annotations[{_CLASS_ANNOTATION}]: {text}"


def _volume(volume: core.PersistentVolume, _: core.PersistentVolume | None) -> Iterator[str]:
    yield from _class_annotation(volume)
    if _OPTIONS_ANNOTATION in volume.metadata.annotations:
        text = 'deprecated since v1.31; use "mountOptions" attribute instead'
        yield f"metadata.annotations[{_OPTIONS_ANNOTATION}]: {text}"
    if volume.spec.persistentVolumeReclaimPolicy == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the"
            " recommended approach is to use dynamic provisioning."
        )
    for index, term in enumerate(volume.spec.nodeAffinity.required.nodeSelectorTerms):
        yield from pod_warnings.of_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    for name, (path, text) in _VOLUME_TYPES.items():
        if volume.spec.persistentVolumeSource.HasField(name):
            yield f"spec.{path}: {text}"


def _claim(claim: core.PersistentVolumeClaim, _: core.PersistentVolumeClaim | None) -> Iterator[str]:
    yield from _class_annotation(claim)
    yield from pod_warnings.of_claim(claim.spec, "spec")


def _storage_class(obj: storage.StorageClass, _: storage.StorageClass | None) -> Iterator[str]:
    for index, term in enumerate(obj.allowedTopologies):
        for number, expression in enumerate(term.matchLabelExpressions):
            problem = pod_warnings.deprecated_label(expression.key)
            if problem:
                at = f"allowedTopologies[{index}].matchLabelExpressions[{number}].key"
                yield f"{at}: {problem}"


def _service(service: core.Service, _: core.Service | None) -> Iterator[str]:
    """In upstream's order: GetWarningsForService."""
    spec = service.spec
    if _HINTS_ANNOTATION in service.metadata.annotations:
        instead = "service.kubernetes.io/topology-mode"
        yield f"annotation {_HINTS_ANNOTATION} is deprecated, please use {instead} instead"
    for index, address in enumerate(() if is_headless(spec) else spec.clusterIPs):
        yield from addresses.warnings(f"spec.clusterIPs[{index}]", address)
    if is_headless(spec):
        if spec.loadBalancerIP:
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.externalIPs:
            yield "spec.externalIPs is ignored for headless services"
        if spec.sessionAffinity != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(spec.externalIPs):
        yield from addresses.warnings(f"spec.externalIPs[{index}]", address)
    yield from addresses.warnings("spec.loadBalancerIP", spec.loadBalancerIP)
    for index, cidr in enumerate(spec.loadBalancerSourceRanges):
        yield from addresses.range_warnings(f"spec.loadBalancerSourceRanges[{index}]", cidr)
    if spec.type == "ExternalName" and spec.externalIPs:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.type != "ExternalName" and spec.externalName:
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.trafficDistribution == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _endpoint_slice(endpoints: discovery.EndpointSlice, old: discovery.EndpointSlice | None) -> Iterator[str]:
    """Those of our own controllers are not looked at, as upstream."""
    if old is None and endpoints.addressType == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    if endpoints.metadata.labels.get(_MANAGED_BY) in _OUR_SLICES:
        return
    for index, endpoint in enumerate(endpoints.endpoints):
        for number, address in enumerate(endpoint.addresses):
            yield from addresses.warnings(f"endpoints[{index}].addresses[{number}]", address)


def _secret(secret: core.Secret, _: core.Secret | None) -> Iterator[str]:
    if secret.type == "kubernetes.io/tls":
        for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
            if b"-----BEGIN " not in secret.data.get(key, b""):
                yield f"tls: failed to find any PEM data in {what} input"
                return


def _template(new: Any, old: Any | None) -> list[str]:
    if old is not None and new.metadata.generation == old.metadata.generation:
        return []
    template = old.spec.template if old is not None else None
    return pod_warnings.of_workload(new.metadata.name, new.spec.template, template)


def _stateful_set(new: apps.StatefulSet, old: apps.StatefulSet | None) -> Iterator[str]:
    yield from _template(new, old)
    if new.spec.HasField("revisionHistoryLimit") and new.spec.revisionHistoryLimit < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is"
            " recommended"
        )


_TABLE: dict[Kind[Any], Callable[[Any, Any], Any]] = {
    kinds.NODE: _node,
    kinds.PERSISTENT_VOLUME: _volume,
    kinds.PERSISTENT_VOLUME_CLAIM: _claim,
    kinds.STORAGE_CLASS: _storage_class,
    kinds.SERVICE: _service,
    kinds.ENDPOINT_SLICE: _endpoint_slice,
    kinds.SECRET: _secret,
    kinds.DAEMON_SET: _template,
    kinds.STATEFUL_SET: _stateful_set,
    kinds.REPLICATION_CONTROLLER: _template,
}
