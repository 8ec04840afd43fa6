"""The Node authorizer: a kubelet reads only the objects that its own pods need.

One difference: a credential for many nodes (see `identity.py`) may list and watch all pods and nodes, as
every kubelet could before authorization with selectors, since one field selector cannot name a hundred nodes.

Source: kube-apiserver 1.36, plugin/pkg/auth/authorizer/node (with AuthorizeNodeWithSelectors, GA in 1.34).
"""

from __future__ import annotations

from collections.abc import Callable

from nominee.apiserver.access.authorizer import ALLOWED, NO_OPINION, Decision, RulesFor
from nominee.apiserver.access.node.graph import Graph
from nominee.apiserver.access.node.identity import NodeIdentity, identify
from nominee.apiserver.access.rbac.bootstrap_policy import load
from nominee.apiserver.access.rbac.rules import Rule
from nominee.apiserver.objects.attributes import Attributes, selected
from nominee.apiserver.objects.user import User

_LEASES = "kube-node-lease"
_ROLE = "system:node"
_READ = ("get", "list", "watch")
_OWN = ("get", "create", "update", "patch", "delete")


class NodeAuthorizer:
    """See the module."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rules = node_rules()
        subdivided: dict[tuple[str, str], Callable[[NodeIdentity, Attributes], Decision]] = {
            ("", "secrets"): self._read_namespaced,
            ("", "configmaps"): self._read_namespaced,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get,
            ("resource.k8s.io", "resourceclaims"): self._get,
            ("storage.k8s.io", "volumeattachments"): self._get,
            ("", "serviceaccounts"): self._token,
            ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("", "nodes"): _node,
            ("", "pods"): self._pod,
        }
        self._subdivided = subdivided

    def decide(self, user: User, attributes: Attributes) -> Decision:
        """Decide a request of a node; users that are no nodes get no opinion."""
        node = identify(user)
        if node is None:
            return NO_OPINION
        if not node.name:
            return _no(f'unknown node for user "{user.name}"')
        if attributes.is_resource:
            part = self._subdivided.get((attributes.group, attributes.resource))
            if part is not None:
                return part(node, attributes)
        return ALLOWED if any(rule.allows(attributes) for rule in self._rules) else NO_OPINION

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        if identify(user) is None:
            return RulesFor()
        return RulesFor((), True, "node authorizer does not support user rule resolution")

    def _related(self, node: NodeIdentity, attributes: Attributes) -> Decision:
        if not attributes.name:
            return _no("No Object name found")
        if self._graph.relates(node, attributes.resource, attributes.namespace, attributes.name):
            return ALLOWED
        return _no(f"no relationship found between node '{node.name}' and this object")

    def _get(self, node: NodeIdentity, attributes: Attributes) -> Decision:
        if attributes.verb != "get":
            return _no("can only get individual resources of this type")
        if attributes.subresource:
            return _no("cannot get subresource")
        return self._related(node, attributes)

    def _read_namespaced(self, node: NodeIdentity, attributes: Attributes) -> Decision:
        if attributes.verb not in _READ:
            return _no("can only read resources of this type")
        if attributes.subresource:
            return _no("cannot read subresource")
        if not attributes.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(node, attributes)

    def _claim(self, node: NodeIdentity, attributes: Attributes) -> Decision:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(node, attributes)

    def _token(self, node: NodeIdentity, attributes: Attributes) -> Decision:
        if attributes.verb != "create" or not attributes.name:
            return _no("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._related(node, attributes)

    def _slice(self, node: NodeIdentity, attributes: Attributes) -> Decision:
        if attributes.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        verb = attributes.verb
        if verb == "create":
            return ALLOWED
        if verb in ("get", "update", "patch", "delete"):
            return self._related(node, attributes)
        if verb in ("list", "watch", "deletecollection"):
            if node.has(
                selected(attributes.field_selector, "spec.nodeName")
                or selected(attributes.field_selector, "nodeName")
            ):
                return ALLOWED
            return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")
        return _no(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update,"
            " patch, delete, deletecollection"
        )

    def _pod(self, node: NodeIdentity, attributes: Attributes) -> Decision:
        verb, subresource = attributes.verb, attributes.subresource
        if subresource == "":
            if verb == "get":
                return self._get(node, attributes)
            if verb in ("list", "watch"):
                if node.many or node.has(selected(attributes.field_selector, "spec.nodeName")):
                    return ALLOWED
                if attributes.name:
                    return self._related(node, attributes)
                return _no("can only list/watch pods with spec.nodeName field selector")
            if verb in ("create", "delete"):
                return ALLOWED
        elif (subresource == "status" and verb in ("update", "patch")) or (
            subresource == "eviction" and verb == "create"
        ):
            return ALLOWED
        return NO_OPINION


def _no(reason: str) -> Decision:
    return Decision(False, reason)


def _lease(node: NodeIdentity, attributes: Attributes) -> Decision:
    if attributes.verb not in _OWN:
        return _no("can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != _LEASES:
        return _no(f'can only access leases in the "{_LEASES}" system namespace')
    if attributes.verb != "create" and not node.has(attributes.name):
        return _no("can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node: NodeIdentity, attributes: Attributes) -> Decision:
    if attributes.verb not in _OWN:
        return _no("can only get, create, update, patch, or delete a CSINode")
    if attributes.subresource:
        return _no("cannot authorize CSINode subresources")
    if attributes.verb != "create" and not node.has(attributes.name):
        return _no("can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _node(node: NodeIdentity, attributes: Attributes) -> Decision:
    verb, name = attributes.verb, attributes.name
    if attributes.subresource == "":
        if verb in ("create", "update", "patch"):
            return ALLOWED
        if verb in _READ:
            if node.has(name) or (node.many and verb != "get"):
                return ALLOWED
            if not name:
                return _no(f"node '{node.name}' cannot read all nodes, only its own Node object")
            return _no(f"node '{node.name}' cannot read '{name}', only its own Node object")
    elif attributes.subresource == "status" and verb in ("update", "patch"):
        return ALLOWED
    return NO_OPINION


def node_rules() -> tuple[Rule, ...]:
    """Return the rules of the role system:node: the requests that every node may make, whatever its pods."""
    role = next(role for role in load().cluster_roles if role.metadata.name == _ROLE)
    # Our kubelets record their events as events.k8s.io; upstream's as core ones.
    own = Rule(("create", "patch", "update"), ("events.k8s.io",), ("events",))
    return (*map(Rule.of, role.rules), own)
