"""NodeRestriction: a kubelet changes its own Node, its pods' status, its lease and CSINode, and no others.

A credential for many nodes (see access/node/identity.py) may change those of each of them; messages name the
credential's node.

Source: kube-apiserver 1.36, plugin/pkg/admission/noderestriction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nominee.apiserver.access.node.graph import references
from nominee.apiserver.access.node.identity import NodeIdentity, identify
from nominee.apiserver.admission.interface import AdmissionRequest, Lookup, Operation, Plugin
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of

MIRROR = "kubernetes.io/config.mirror"
_LEASES = "kube-node-lease"
_RESTRICTED = "node-restriction.kubernetes.io"
_KUBELET_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBELET_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)


class NodeRestriction(Plugin):
    """Restricts the writes of kubelets to their own nodes and pods."""

    name = "NodeRestriction"

    def __init__(self) -> None:
        self._checks: dict[AnyKind, Callable[[AdmissionRequest, NodeIdentity, Lookup], Any]] = {
            kinds.POD: self._pod,
            kinds.NODE: self._node,
            kinds.PERSISTENT_VOLUME_CLAIM: self._claim,
            kinds.SERVICE_ACCOUNT: self._account,
            kinds.LEASE: self._lease,
            kinds.CSI_NODE: self._csi_node,
            kinds.RESOURCE_SLICE: self._slice,
        }

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        return kind in self._checks

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        user = request.origin.user
        node = identify(user)
        if node is None:
            return
        if not node.name:
            raise request.forbidden(f'could not determine node from user "{user.name}"')
        await self._checks[request.kind](request, node, lookup)

    async def _pod(self, request: AdmissionRequest, node: NodeIdentity, lookup: Lookup) -> None:
        match request.subresource, request.operation:
            case "", "CREATE":
                await self._mirror_pod(request, node, lookup)
            case "", "DELETE":
                pod = await _existing_pod(request, lookup)
                if not node.has(pod.spec.nodeName):
                    raise request.forbidden(
                        f'node "{node.name}" can only delete pods with spec.nodeName set to itself'
                    )
            case "", operation:
                raise request.forbidden(
                    f'unexpected operation "{operation}",'
                    f' node "{node.name}" can only create and delete mirror pods'
                )
            case "status", "UPDATE":
                _pod_status(request, node)
            case "eviction", "CREATE":
                pod = await _existing_pod(request, lookup)
                if not node.has(pod.spec.nodeName):
                    raise request.forbidden(
                        f"node {node.name} can only evict pods with spec.nodeName set to itself"
                    )
            case "status" | "eviction", operation:
                raise request.forbidden(f'unexpected operation "{operation}"')
            case other, _:
                raise request.forbidden(
                    f"unexpected pod subresource \"{other}\", only 'status' and 'eviction' are allowed"
                )

    async def _mirror_pod(self, request: AdmissionRequest, node: NodeIdentity, lookup: Lookup) -> None:
        pod, name = request.obj, node.name
        if MIRROR not in pod.metadata.annotations:
            raise request.forbidden(
                f'pod does not have "{MIRROR}" annotation, node "{name}" can only create mirror pods'
            )
        own = pod.spec.nodeName
        if not node.has(own):
            raise request.forbidden(f'node "{name}" can only create pods with spec.nodeName set to itself')
        owners = pod.metadata.ownerReferences
        if len(owners) > 1:
            raise request.forbidden(
                f'node "{name}" can only create pods with a single owner reference set to itself'
            )
        if not owners or (owners[0].apiVersion, owners[0].kind, owners[0].name) != ("v1", "Node", own):
            raise request.forbidden(
                f'node "{name}" can only create pods with an owner reference set to itself'
            )
        owner = owners[0]
        if not owner.controller:
            raise request.forbidden(
                f'node "{name}" can only create pods with a controller owner reference set to itself'
            )
        if owner.blockOwnerDeletion:
            raise request.forbidden(f'node "{name}" must not set blockOwnerDeletion on an owner reference')
        found = await lookup.find(kinds.NODE, "", own)
        if found is None:
            raise errors.not_found(kinds.NODE, own)
        uid = found.message.metadata.uid
        if owner.uid != uid:
            raise request.forbidden(f"node {own} UID mismatch: expected {owner.uid} got {uid}")
        self._no_references(request, node)

    def _no_references(self, request: AdmissionRequest, node: NodeIdentity) -> None:
        pod = copy_of(request.obj)
        # `references` skips mirror pods; here their references are what must be refused.
        del pod.metadata.annotations[MIRROR]
        wanted = {resource for resource, _ in references(pod)}
        for resource, what in (
            ("serviceaccounts", "a service account"),
            ("secrets", "secrets"),
            ("configmaps", "configmaps"),
        ):
            if resource in wanted:
                raise request.forbidden(f'node "{node.name}" can not create pods that reference {what}')
        for volume in pod.spec.volumes:
            for source in volume.volumeSource.projected.sources:
                if source.HasField("clusterTrustBundle"):
                    raise request.forbidden(
                        f'node "{node.name}" can not create pods that reference clustertrustbundles'
                    )
        if "persistentvolumeclaims" in wanted:
            raise request.forbidden(
                f'node "{node.name}" can not create pods that reference persistentvolumeclaims'
            )

    async def _node(self, request: AdmissionRequest, node: NodeIdentity, lookup: Lookup) -> None:
        if not node.has(request.name):
            raise request.forbidden(f'node "{node.name}" is not allowed to modify node "{request.name}"')
        new, old = request.obj, request.old
        if request.operation == "CREATE":
            if new.spec.HasField("configSource"):
                raise request.forbidden(
                    f'node "{node.name}" is not allowed to create pods with a non-nil configSource'
                )
            wrong = _forbidden_labels(new.metadata.labels, {})
            if wrong:
                raise request.forbidden(
                    f'node "{node.name}" is not allowed to set the following labels: {", ".join(wrong)}'
                )
        elif request.operation == "UPDATE":
            if new.spec.HasField("configSource") and new.spec.configSource != old.spec.configSource:
                raise request.forbidden(
                    f'node "{node.name}" is not allowed to update configSource to a new non-nil configSource'
                )
            if list(new.spec.taints) != list(old.spec.taints):
                raise request.forbidden(f'node "{node.name}" is not allowed to modify taints')
            wrong = _forbidden_labels(new.metadata.labels, old.metadata.labels)
            if wrong:
                raise request.forbidden(f"is not allowed to modify labels: {', '.join(wrong)}")

    async def _claim(self, request: AdmissionRequest, node: NodeIdentity, lookup: Lookup) -> None:
        if request.subresource != "status":
            raise request.forbidden("may only update PVC status")
        if request.operation != "UPDATE":
            raise request.forbidden(f'unexpected operation "{request.operation}"')
        new, old = _without_status(request.obj), _without_status(request.old)
        if new != old:
            raise request.forbidden(
                f'node "{node.name}" is not allowed to update fields other than status.capacity and'
                " status.conditions"
            )

    async def _account(self, request: AdmissionRequest, node: NodeIdentity, lookup: Lookup) -> None:
        if request.operation != "CREATE" or request.subresource != "token":
            return
        reference = request.obj.spec.boundObjectRef
        if reference.apiVersion != "v1" or reference.kind != "Pod" or not reference.name:
            raise request.forbidden("node requested token not bound to a pod")
        if not reference.uid:
            raise request.forbidden("node requested token with a pod binding without a uid")
        found = await lookup.find(kinds.POD, request.namespace, reference.name)
        if found is None:
            raise errors.not_found(kinds.POD, reference.name)
        pod = found.message
        if reference.uid != pod.metadata.uid:
            raise request.forbidden(
                f"the UID in the bound object reference ({reference.uid}) does not match the UID in record."
                " The object might have been deleted and then recreated"
            )
        if not node.has(pod.spec.nodeName):
            raise request.forbidden("node requested token bound to a pod scheduled on a different node")

    async def _lease(self, request: AdmissionRequest, node: NodeIdentity, lookup: Lookup) -> None:
        if request.namespace != _LEASES:
            raise request.forbidden(f'can only access leases in the "{_LEASES}" system namespace')
        if not node.has(request.name):
            raise request.forbidden("can only access node lease with the same name as the requesting node")

    async def _csi_node(self, request: AdmissionRequest, node: NodeIdentity, lookup: Lookup) -> None:
        if not node.has(request.name):
            raise request.forbidden("can only access CSINode with the same name as the requesting node")

    async def _slice(self, request: AdmissionRequest, node: NodeIdentity, lookup: Lookup) -> None:
        if request.operation == "CREATE":
            of = request.obj.spec.nodeName
        elif request.operation == "DELETE":
            found = await lookup.find(kinds.RESOURCE_SLICE, "", request.name)
            if found is None:
                raise errors.not_found(kinds.RESOURCE_SLICE, request.name)
            of = found.message.spec.nodeName
        else:
            # The field is immutable, and the authorizer has checked the old object.
            return
        if not node.has(of):
            verb = "create" if request.operation == "CREATE" else "delete"
            raise request.forbidden(
                f"can only {verb} ResourceSlice with the same NodeName as the requesting node"
            )


async def _existing_pod(request: AdmissionRequest, lookup: Lookup) -> Any:
    found = await lookup.find(kinds.POD, request.namespace, request.name)
    if found is None:
        raise errors.not_found(kinds.POD, request.name)
    return found.message


def _pod_status(request: AdmissionRequest, node: NodeIdentity) -> None:
    new, old, name = request.obj, request.old, node.name
    if not node.has(old.spec.nodeName):
        raise request.forbidden(
            f'node "{name}" can only update pod status for pods with spec.nodeName set to itself'
        )
    if dict(new.metadata.labels) != dict(old.metadata.labels):
        raise request.forbidden(f'node "{name}" cannot update labels through pod status')
    claims = [
        [(status.name, status.resourceClaimName) for status in each.status.resourceClaimStatuses]
        for each in (new, old)
    ]
    if claims[0] != claims[1]:
        raise request.forbidden(f'node "{name}" cannot update resource claim statues')


def _without_status(claim: Any) -> Any:
    copy = copy_of(claim)
    copy.metadata.ClearField("resourceVersion")
    del copy.metadata.managedFields[:]
    for field in ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"):
        copy.status.ClearField(field)
    return copy


def _forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Return the changed labels that a node may not change, sorted."""
    changed = {key for key in {*new, *old} if new.get(key) != old.get(key)}
    return sorted(key for key in changed if _is_forbidden(key))


def _is_forbidden(key: str) -> bool:
    prefix, slash, _ = key.partition("/")
    if not slash:
        return False
    if _within(prefix, _RESTRICTED):
        return True
    if not (_within(prefix, "kubernetes.io") or _within(prefix, "k8s.io")):
        return False
    return key not in _KUBELET_LABELS and not any(_within(prefix, own) for own in _KUBELET_PREFIXES)


def _within(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")
