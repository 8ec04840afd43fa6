"""The objects that belong to a node: its pods, and the secrets, config maps, claims and volumes of these.

Upstream updates a graph with every change. Here nothing happens until a kubelet asks for one of these
objects, which Nominee's kubelet never does; then only the pods of that namespace that changed since are read.

Source: kube-apiserver 1.36, plugin/pkg/auth/authorizer/node/graph.go; api/pod/util.go for the references of a
pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from nominee.apiserver.access.node.identity import NodeIdentity
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind

Reference = tuple[str, str]
"""Resource and name, in the pod's own namespace."""

_SECRET_VOLUMES = {
    "azureFile": "secretName",
    "cephfs": "secretRef",
    "cinder": "secretRef",
    "flexVolume": "secretRef",
    "rbd": "secretRef",
    "scaleIO": "secretRef",
    "iscsi": "secretRef",
    "storageos": "secretRef",
    "csi": "nodePublishSecretRef",
}
_SECRETS_OF_VOLUMES = (
    "nodeStageSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
    "controllerExpandSecretRef",
)


class Found(Protocol):
    """A cached object."""

    @property
    def revision(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def message(self) -> Any: ...


class Objects(Protocol):
    """The watch cache."""

    def list(self, kind: AnyKind, namespace: str = "") -> Sequence[Found]: ...

    def get(self, kind: AnyKind, namespace: str, name: str) -> Found | None: ...


def references(pod: Any) -> frozenset[Reference]:
    """Return the secrets, config maps, claims, service account and resource claims that a pod refers to.

    A mirror pod has none: its node creates it, and must not gain access by it.
    """
    if "kubernetes.io/config.mirror" in pod.metadata.annotations:
        return frozenset()
    return _references(pod)


def secrets(pod: Any) -> frozenset[str]:
    """Return the names of the secrets that a pod refers to, also of a mirror pod's."""
    return frozenset(name for kind, name in _references(pod) if kind == "secrets")


def _references(pod: Any) -> frozenset[Reference]:
    spec = pod.spec
    found: set[Reference] = set()
    if spec.serviceAccountName:
        found.add(("serviceaccounts", spec.serviceAccountName))
    found.update(("secrets", secret.name) for secret in spec.imagePullSecrets)
    for container in (*spec.initContainers, *spec.containers, *spec.ephemeralContainers):
        common = (
            container.ephemeralContainerCommon
            if hasattr(container, "ephemeralContainerCommon")
            else container
        )
        found.update(_of_environment(common))
    for volume in spec.volumes:
        found.update(_of_volume(pod, volume.name, volume.volumeSource))
    claims = {status.name: status.resourceClaimName for status in pod.status.resourceClaimStatuses}
    for claim in spec.resourceClaims:
        found.add(("resourceclaims", claim.resourceClaimName or claims.get(claim.name, "")))
    return frozenset(reference for reference in found if reference[1])


def _of_environment(container: Any) -> Iterator[Reference]:
    for source in container.envFrom:
        yield "secrets", source.secretRef.localObjectReference.name
        yield "configmaps", source.configMapRef.localObjectReference.name
    for variable in container.env:
        yield "secrets", variable.valueFrom.secretKeyRef.localObjectReference.name
        yield "configmaps", variable.valueFrom.configMapKeyRef.localObjectReference.name


def _of_volume(pod: Any, name: str, source: Any) -> Iterator[Reference]:
    yield "secrets", source.secret.secretName
    yield "configmaps", source.configMap.localObjectReference.name
    yield "persistentvolumeclaims", source.persistentVolumeClaim.claimName
    if source.HasField("ephemeral"):
        yield "persistentvolumeclaims", f"{pod.metadata.name}-{name}"
    for projection in source.projected.sources:
        yield "secrets", projection.secret.localObjectReference.name
        yield "configmaps", projection.configMap.localObjectReference.name
    for kind, field in _SECRET_VOLUMES.items():
        if source.HasField(kind):
            value = getattr(getattr(source, kind), field)
            yield "secrets", value if isinstance(value, str) else value.name


class Graph:
    """Relates objects to nodes, from the watch cache."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        # By namespace and pod: its revision, node and references.
        self._pods: dict[str, dict[str, tuple[int, str, frozenset[Reference]]]] = {}

    def relates(self, nodes: NodeIdentity, resource: str, namespace: str, name: str) -> bool:
        """Report whether an object belongs to one of these nodes."""
        if resource == "pods":
            pod = self._objects.get(kinds.POD, namespace, name)
            return pod is not None and nodes.has(pod.message.spec.nodeName)
        if resource == "persistentvolumes":
            return self._volume(nodes, name)
        if resource == "volumeattachments":
            attachment = self._objects.get(kinds.VOLUME_ATTACHMENT, "", name)
            return attachment is not None and nodes.has(attachment.message.spec.nodeName)
        if resource == "resourceslices":
            found = self._objects.get(kinds.RESOURCE_SLICE, "", name)
            return found is not None and nodes.has(found.message.spec.nodeName)
        if (resource, name) in self._needed(nodes, namespace):
            return True
        return resource == "secrets" and self._volume_secret(nodes, namespace, name)

    def _needed(self, nodes: NodeIdentity, namespace: str) -> set[Reference]:
        needed: set[Reference] = set()
        for _, node, wanted in self._of(namespace).values():
            if wanted and nodes.has(node):
                needed |= wanted
        return needed

    def _of(self, namespace: str) -> dict[str, tuple[int, str, frozenset[Reference]]]:
        """Return the bound pods of a namespace; pods that changed are read again."""
        before, now = self._pods.get(namespace, {}), {}
        for found in self._objects.list(kinds.POD, namespace):
            known = before.get(found.name)
            if known is None or known[0] != found.revision:
                pod = found.message
                node = pod.spec.nodeName
                known = (found.revision, node, references(pod) if node else frozenset())
            now[found.name] = known
        self._pods[namespace] = now
        return now

    def _volume(self, nodes: NodeIdentity, name: str) -> bool:
        volume = self._objects.get(kinds.PERSISTENT_VOLUME, "", name)
        if volume is None or not volume.message.spec.HasField("claimRef"):
            return False
        claim = volume.message.spec.claimRef
        return ("persistentvolumeclaims", claim.name) in self._needed(nodes, claim.namespace)

    def _volume_secret(self, nodes: NodeIdentity, namespace: str, name: str) -> bool:
        """Report whether a volume of a claim of the node's pods needs the secret of any namespace."""
        for found in self._objects.list(kinds.PERSISTENT_VOLUME):
            spec = found.message.spec
            if (namespace, name) in set(_secrets_of(spec)) and self._volume(nodes, found.name):
                return True
        return False


def _secrets_of(spec: Any) -> Iterable[tuple[str, str]]:
    source = spec.persistentVolumeSource
    if source.HasField("csi"):
        for field in _SECRETS_OF_VOLUMES:
            reference = getattr(source.csi, field)
            if reference.name:
                yield reference.namespace, reference.name
    for kind in ("cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"):
        if source.HasField(kind):
            reference = getattr(source, kind).secretRef
            if reference.name:
                yield reference.namespace or spec.claimRef.namespace, reference.name
    if source.HasField("azureFile") and source.azureFile.secretName:
        yield source.azureFile.secretNamespace or spec.claimRef.namespace, source.azureFile.secretName
