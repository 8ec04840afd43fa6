"""What a kubelet may ask for, and what it may change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nominee.apiserver.access.authorizer import ALLOWED, Decision, RulesFor
from nominee.apiserver.access.node.authorizer import NodeAuthorizer
from nominee.apiserver.access.node.graph import Graph, references
from nominee.apiserver.access.node.identity import NodeIdentity, identify
from nominee.apiserver.admission.interface import AdmissionRequest, Operation
from nominee.apiserver.admission.permissions.node_restriction import NodeRestriction
from nominee.apiserver.objects.attributes import Attributes, Origin
from nominee.apiserver.objects.user import User
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import coordination, core, policy, storage
from tests.apiserver.access.fakes import Objects

N1 = User("system:node:n1", ("system:nodes", "system:authenticated"))
MANY = User("system:node:kubelet-0", ("system:nodes", "nominee:nodes:n0..9", "nominee:nodes:pool-*"))
NO_RELATION = "no relationship found between node 'n1' and this object"


def pod(name: str, node: str, namespace: str = "default") -> core.Pod:
    made = core.Pod()
    made.metadata.name, made.metadata.namespace, made.metadata.uid = name, namespace, f"uid-{name}"
    made.spec.nodeName = node
    return made


@pytest.fixture
def objects() -> Objects:
    made = Objects()
    mine = pod("mine", "n1")
    container = mine.spec.containers.add(name="c")
    container.env.add(name="A").valueFrom.secretKeyRef.localObjectReference.name = "of-env"
    container.envFrom.add().configMapRef.localObjectReference.name = "of-env-from"
    mine.spec.volumes.add(name="s").volumeSource.secret.secretName = "of-volume"
    projected = mine.spec.volumes.add(name="p").volumeSource.projected
    projected.sources.add().configMap.localObjectReference.name = "of-projection"
    mine.spec.volumes.add(name="d").volumeSource.persistentVolumeClaim.claimName = "claim"
    mine.spec.volumes.add(name="e").volumeSource.ephemeral.SetInParent()
    mine.spec.imagePullSecrets.add(name="of-image")
    mine.spec.serviceAccountName = "robot"
    mine.spec.resourceClaims.add(name="gpu", resourceClaimName="device")
    made.put(kinds.POD, mine)
    foreign = pod("foreign", "n2")
    foreign.spec.volumes.add(name="s").volumeSource.secret.secretName = "theirs"
    made.put(kinds.POD, foreign)
    volume = core.PersistentVolume()
    volume.metadata.name = "volume"
    volume.spec.claimRef.namespace, volume.spec.claimRef.name = "default", "claim"
    volume.spec.persistentVolumeSource.csi.nodeStageSecretRef.name = "of-stage"
    volume.spec.persistentVolumeSource.csi.nodeStageSecretRef.namespace = "csi"
    made.put(kinds.PERSISTENT_VOLUME, volume)
    attachment = storage.VolumeAttachment()
    attachment.metadata.name, attachment.spec.nodeName = "attached", "n1"
    made.put(kinds.VOLUME_ATTACHMENT, attachment)
    for name in ("n1", "n2"):
        node = core.Node()
        node.metadata.name, node.metadata.uid = name, f"uid-{name}"
        made.put(kinds.NODE, node)
    return made


@pytest.mark.parametrize(
    ("user", "node", "has"),
    [
        (N1, "n1", True),
        (N1, "n11", False),
        (N1, "", False),
        (MANY, "n0", True),
        (MANY, "n9", True),
        (MANY, "n10", False),
        (MANY, "n07", False),
        (MANY, "x7", False),
        (MANY, "pool-17", True),
        (MANY, "pool", False),
    ],
)
def test_which_nodes_a_user_is(user: User, node: str, has: bool) -> None:
    found = identify(user)
    assert found is not None
    assert found.has(node) is has


def test_who_is_no_node() -> None:
    assert identify(User("system:node:n1", ("other",))) is None
    assert identify(User("n1", ("system:nodes",))) is None
    assert identify(N1) == NodeIdentity("n1")


def asked(
    verb: str, what: str, namespace: str = "default", name: str = "", *, fields: str = ""
) -> Attributes:
    """`what` is resource[/subresource][.group]."""
    resource, _, group = what.partition(".")
    resource, _, subresource = resource.partition("/")
    return Attributes(verb, resource, group, "v1", subresource, namespace, name, "", fields)


ALLOWED_REQUESTS = [
    asked("get", "nodes", "", "n1"),
    asked("watch", "nodes", "", "n1", fields="metadata.name=n1"),
    asked("create", "nodes", ""),
    asked("patch", "nodes/status", "", "n1"),
    asked("list", "pods", "", fields="spec.nodeName=n1"),
    asked("watch", "pods", "", fields="metadata.namespace=x,spec.nodeName==n1"),
    asked("get", "pods", name="mine"),
    asked("delete", "pods", name="mine"),
    asked("patch", "pods/status", name="mine"),
    asked("create", "pods/eviction", name="mine"),
    asked("get", "secrets", name="of-env"),
    asked("watch", "secrets", name="of-volume"),
    asked("get", "secrets", name="of-image"),
    asked("get", "secrets", "csi", "of-stage"),
    asked("get", "configmaps", name="of-env-from"),
    asked("list", "configmaps", name="of-projection"),
    asked("get", "persistentvolumeclaims", name="claim"),
    asked("get", "persistentvolumeclaims", name="mine-e"),
    asked("patch", "persistentvolumeclaims/status", name="claim"),
    asked("get", "persistentvolumes", "", "volume"),
    asked("get", "volumeattachments.storage.k8s.io", "", "attached"),
    asked("get", "resourceclaims.resource.k8s.io", name="device"),
    asked("create", "serviceaccounts/token", name="robot"),
    asked("update", "leases.coordination.k8s.io", "kube-node-lease", "n1"),
    asked("create", "leases.coordination.k8s.io", "kube-node-lease"),
    asked("patch", "csinodes.storage.k8s.io", "", "n1"),
    asked("list", "services", ""),
    asked("create", "events"),
    asked("create", "subjectaccessreviews.authorization.k8s.io", ""),
]
REFUSED_REQUESTS = [
    (asked("get", "nodes", "", "n2"), "node 'n1' cannot read 'n2', only its own Node object"),
    (asked("list", "nodes", ""), "node 'n1' cannot read all nodes, only its own Node object"),
    (asked("delete", "nodes", "", "n1"), ""),
    (asked("list", "pods", ""), "can only list/watch pods with spec.nodeName field selector"),
    (
        asked("list", "pods", "", fields="spec.nodeName!=n1"),
        "can only list/watch pods with spec.nodeName field selector",
    ),
    (
        asked("list", "pods", "", fields="spec.nodeName=n2"),
        "can only list/watch pods with spec.nodeName field selector",
    ),
    (asked("get", "pods", name="foreign"), NO_RELATION),
    (asked("create", "pods/binding", name="mine"), ""),
    (asked("patch", "pods", name="mine"), ""),
    (asked("patch", "pods/resize", name="mine"), ""),
    (asked("get", "secrets", name="theirs"), NO_RELATION),
    (asked("list", "secrets"), "No Object name found"),
    (asked("list", "secrets", ""), "can only read namespaced object of this type"),
    (asked("update", "secrets", name="of-env"), "can only read resources of this type"),
    (asked("list", "persistentvolumeclaims"), "can only get individual resources of this type"),
    (asked("get", "persistentvolumes", "", "other"), NO_RELATION),
    (asked("get", "leases.coordination.k8s.io", "default", "n1"),
     'can only access leases in the "kube-node-lease" system namespace'),
    (asked("update", "leases.coordination.k8s.io", "kube-node-lease", "n2"),
     "can only access node lease with the same name as the requesting node"),
    (asked("list", "leases.coordination.k8s.io", "kube-node-lease"),
     "can only get, create, update, patch, or delete a node lease"),
    (asked("get", "csinodes.storage.k8s.io", "", "n2"),
     "can only access CSINode with the same name as the requesting node"),
    (asked("create", "serviceaccounts/token", name="other"), NO_RELATION),
    (asked("get", "serviceaccounts", name="robot"),
     "can only create tokens for individual service accounts"),
    (asked("create", "pods.x", name="mine"), ""),
    (Attributes("get", path="/metrics"), ""),
]  # fmt: skip


@pytest.mark.parametrize("attributes", ALLOWED_REQUESTS)
def test_what_a_node_may_ask(objects: Objects, attributes: Attributes) -> None:
    assert NodeAuthorizer(Graph(objects)).decide(N1, attributes) == ALLOWED


@pytest.mark.parametrize(("attributes", "reason"), REFUSED_REQUESTS)
def test_what_a_node_may_not_ask(objects: Objects, attributes: Attributes, reason: str) -> None:
    assert NodeAuthorizer(Graph(objects)).decide(N1, attributes) == Decision(False, reason)


def test_a_process_of_many_nodes(objects: Objects) -> None:
    authorizer = NodeAuthorizer(Graph(objects))
    for allowed in (
        asked("list", "pods", ""),
        asked("watch", "nodes", ""),
        asked("get", "pods", name="foreign"),
        asked("get", "nodes", "", "n7"),
        asked("update", "leases.coordination.k8s.io", "kube-node-lease", "pool-3"),
    ):
        assert authorizer.decide(MANY, allowed) == ALLOWED, allowed
    for refused in (
        asked("get", "nodes", "", "n10"),
        asked("list", "secrets", ""),
        asked("create", "pods/binding", name="mine"),
        asked("update", "leases.coordination.k8s.io", "kube-node-lease", "n10"),
    ):
        assert not authorizer.decide(MANY, refused).allowed, refused


def test_others_are_not_the_node_authorizers_business(objects: Objects) -> None:
    authorizer = NodeAuthorizer(Graph(objects))
    assert authorizer.decide(User("jane"), asked("get", "nodes", "", "n1")) == Decision(False)
    assert authorizer.rules_for(User("jane"), "default") == RulesFor()
    assert authorizer.rules_for(N1, "default").incomplete


def test_the_graph_follows_pods(objects: Objects) -> None:
    graph, node = Graph(objects), NodeIdentity("n1")
    assert not graph.relates(node, "secrets", "default", "theirs")
    moved = pod("foreign", "n1")
    moved.spec.volumes.add(name="s").volumeSource.secret.secretName = "theirs"
    objects.put(kinds.POD, moved)
    assert graph.relates(node, "secrets", "default", "theirs")
    assert not graph.relates(node, "secrets", "other", "theirs")


def test_a_mirror_pod_gives_nothing() -> None:
    mirror = pod("m", "n1")
    mirror.spec.volumes.add(name="s").volumeSource.secret.secretName = "wanted"
    assert references(mirror) == {("secrets", "wanted")}
    mirror.metadata.annotations["kubernetes.io/config.mirror"] = "x"
    assert references(mirror) == frozenset()


# NodeRestriction.


def by(user: User, request: AdmissionRequest) -> AdmissionRequest:
    return replace(request, origin=Origin(user))


def request(
    operation: Operation, kind: Kind[Any], obj: Any, old: Any = None, subresource: str = "", name: str = ""
) -> AdmissionRequest:
    about = obj if obj is not None else old
    namespace = about.metadata.namespace if about is not None else "default"
    return AdmissionRequest(operation, kind, namespace, name or about.metadata.name, subresource, obj, old)


def changed(obj: Any, change: Callable[[Any], Any]) -> tuple[Any, Any]:
    new = type(obj)()
    new.CopyFrom(obj)
    change(new)
    return new, obj


def node(name: str = "n1", **labels: str) -> core.Node:
    made = core.Node()
    made.metadata.name = name
    made.metadata.labels.update(
        {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    )
    return made


def mirror(**spec: Any) -> core.Pod:
    made = pod("m", "n1")
    made.metadata.annotations["kubernetes.io/config.mirror"] = "hash"
    made.metadata.ownerReferences.add(apiVersion="v1", kind="Node", name="n1", uid="uid-n1", controller=True)
    for key, value in spec.items():
        setattr(made.spec, key, value)
    return made


def lease(name: str, namespace: str = "kube-node-lease") -> coordination.Lease:
    made = coordination.Lease()
    made.metadata.name, made.metadata.namespace = name, namespace
    return made


def nominated(name: str, of: str) -> tuple[core.Pod, core.Pod]:
    return changed(pod(name, of), lambda new: setattr(new.status, "nominatedNodeName", "n1"))


def update(kind: Kind[Any], pair: tuple[Any, Any], subresource: str = "") -> AdmissionRequest:
    return request("UPDATE", kind, *pair, subresource)


PASS = [
    request("CREATE", kinds.NODE, node()),
    request("CREATE", kinds.NODE, node(kubernetes_io__hostname="n1", own="x", kubelet_kubernetes_io__a="b")),
    update(kinds.NODE, changed(node(), lambda new: new.status.conditions.add(type="Ready")), "status"),
    update(kinds.NODE, changed(node(), lambda new: new.metadata.labels.update({"own": "x"}))),
    update(kinds.POD, changed(pod("p", "n1"), lambda new: setattr(new.status, "phase", "Running")), "status"),
    update(kinds.POD, nominated("p", "n1"), "status"),
    request("DELETE", kinds.POD, None, None, name="mine"),
    request("CREATE", kinds.POD, policy.Eviction(metadata=pod("mine", "").metadata), subresource="eviction"),
    request("CREATE", kinds.POD, mirror()),
    request("CREATE", kinds.LEASE, lease("n1")),
    update(kinds.LEASE, (lease("n1"), lease("n1"))),
]
REFUSE = [
    (request("CREATE", kinds.NODE, node("n2")), 'node "n1" is not allowed to modify node "n2"'),
    (update(kinds.NODE, (node("n2"), node("n2")), "status"), 'node "n1" is not allowed to modify node "n2"'),
    (
        request("CREATE", kinds.NODE, changed(node(), lambda new: new.metadata.labels.update(
            {"node-restriction.kubernetes.io/a": "b", "kubernetes.io/role": "x"}))[0]),
        'node "n1" is not allowed to set the following labels:'
        " kubernetes.io/role, node-restriction.kubernetes.io/a",
    ),
    (
        update(kinds.NODE, changed(node(), lambda new: new.metadata.labels.update({"node.k8s.io/x": "y"}))),
        "is not allowed to modify labels: node.k8s.io/x",
    ),
    (
        update(kinds.NODE, changed(node(), lambda new: new.spec.taints.add(key="k", effect="NoSchedule"))),
        'node "n1" is not allowed to modify taints',
    ),
    (
        update(kinds.POD, nominated("p", "n2"), "status"),
        'node "n1" can only update pod status for pods with spec.nodeName set to itself',
    ),
    (
        update(kinds.POD, nominated("p", ""), "status"),
        'node "n1" can only update pod status for pods with spec.nodeName set to itself',
    ),
    (
        update(kinds.POD, changed(pod("p", "n1"), lambda new: new.metadata.labels.update(a="b")), "status"),
        'node "n1" cannot update labels through pod status',
    ),
    (
        update(kinds.POD, changed(pod("p", "n1"), lambda new: new.status.resourceClaimStatuses.add(name="x")),
               "status"),
        'node "n1" cannot update resource claim statues',
    ),
    (
        update(kinds.POD, (pod("p", "n1"), pod("p", "n1"))),
        'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods',
    ),
    (
        request("DELETE", kinds.POD, None, None, name="foreign"),
        'node "n1" can only delete pods with spec.nodeName set to itself',
    ),
    (request("DELETE", kinds.POD, None, None, name="none"), 'pods "none" not found'),
    (
        request("CREATE", kinds.POD, policy.Eviction(metadata=pod("foreign", "").metadata),
                subresource="eviction"),
        "node n1 can only evict pods with spec.nodeName set to itself",
    ),
    (
        request("CREATE", kinds.POD, core.Binding(metadata=pod("mine", "").metadata), subresource="binding"),
        "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed",
    ),
    (
        update(kinds.POD, (pod("p", "n1"), pod("p", "n1")), "resize"),
        "unexpected pod subresource \"resize\", only 'status' and 'eviction' are allowed",
    ),
    (
        request("CREATE", kinds.POD, pod("p", "n1")),
        'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
    ),
    (
        request("CREATE", kinds.POD, mirror(nodeName="n2")),
        'node "n1" can only create pods with spec.nodeName set to itself',
    ),
    (
        request("CREATE", kinds.POD, mirror(serviceAccountName="robot")),
        'node "n1" can not create pods that reference a service account',
    ),
    (request("CREATE", kinds.LEASE, lease("n2")),
     "can only access node lease with the same name as the requesting node"),
    (request("CREATE", kinds.LEASE, lease("n1", "default")),
     'can only access leases in the "kube-node-lease" system namespace'),
]  # fmt: skip


@pytest.mark.parametrize("wanted", PASS)
async def test_what_a_node_may_change(objects: Objects, wanted: AdmissionRequest) -> None:
    plugin = NodeRestriction()
    assert plugin.handles(wanted.kind, wanted.operation, wanted.subresource)
    await plugin.admit(by(N1, wanted), objects.lookup)


@pytest.mark.parametrize(("wanted", "message"), REFUSE)
async def test_what_a_node_may_not_change(objects: Objects, wanted: AdmissionRequest, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        await NodeRestriction().admit(by(N1, wanted), objects.lookup)
    assert refused.value.message.endswith(message)
    await NodeRestriction().admit(by(User("jane"), wanted), objects.lookup)


async def test_many_nodes_may_change_theirs(objects: Objects) -> None:
    plugin = NodeRestriction()
    await plugin.admit(by(MANY, request("CREATE", kinds.NODE, node("pool-1"))), objects.lookup)
    await plugin.admit(by(MANY, update(kinds.POD, nominated("p", "n7"), "status")), objects.lookup)
    with pytest.raises(StatusError, match="can only update pod status"):
        await plugin.admit(by(MANY, update(kinds.POD, nominated("p", "n10"), "status")), objects.lookup)
