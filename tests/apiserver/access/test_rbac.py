"""RBAC: which rule allows what, whose rules these are, and what a cluster begins with."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.access.authorizer import AlwaysDeny, Union, forbidden
from nominee.apiserver.access.rbac import aggregation
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.access.rbac.bootstrap import reconcile
from nominee.apiserver.access.rbac.bootstrap_policy import Policy, load
from nominee.apiserver.access.rbac.rules import Rule, compact, uncovered_rules
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import ADMIN, ANONYMOUS, User
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import rbac as pb
from tests.apiserver.access.fakes import Objects

AUTHENTICATED = "system:authenticated"
SCHEDULER = User("system:kube-scheduler", (AUTHENTICATED,))
CONTROLLERS = User("system:kube-controller-manager", (AUTHENTICATED,))
AUTOSCALER = User("cluster-autoscaler", (AUTHENTICATED,))
JANE = User("jane", ("dev", AUTHENTICATED))


def asked(verb: str, resource: str, namespace: str = "", name: str = "", group: str = "") -> Attributes:
    plain, _, subresource = resource.partition("/")
    return Attributes(verb, plain, group, "v1", subresource, namespace, name)


def path(verb: str, where: str) -> Attributes:
    return Attributes(verb, path=where)


def store(objects: Objects, policy: Policy) -> None:
    for kind, found in (
        (kinds.CLUSTER_ROLE, policy.cluster_roles),
        (kinds.CLUSTER_ROLE_BINDING, policy.cluster_role_bindings),
        (kinds.ROLE, policy.roles),
        (kinds.ROLE_BINDING, policy.role_bindings),
    ):
        for obj in found:
            objects.put(kind, obj)


@pytest.fixture
def objects() -> Objects:
    """What a cluster begins with."""
    made, policy = Objects(), load()
    aggregation.settle(policy.cluster_roles)
    store(made, policy)
    return made


def bind(objects: Objects, role: str, subject: str, namespace: str = "", kind: str = "ClusterRole") -> None:
    binding: Any = pb.RoleBinding() if namespace else pb.ClusterRoleBinding()
    binding.metadata.namespace, binding.metadata.name = namespace, f"{subject}-{role}"
    binding.roleRef.kind, binding.roleRef.name = kind, role
    what, _, name = subject.partition(":")
    if what == "ServiceAccount":
        where, _, account = name.partition(":")
        binding.subjects.add(kind=what, namespace=where, name=account)
    else:
        binding.subjects.add(kind=what, name=name)
    objects.put(kinds.ROLE_BINDING if namespace else kinds.CLUSTER_ROLE_BINDING, binding)


def role(objects: Objects, name: str, *rules: dict[str, Any], namespace: str = "", **labels: str) -> Any:
    made: Any = pb.Role() if namespace else pb.ClusterRole()
    made.metadata.namespace, made.metadata.name = namespace, name
    made.metadata.labels.update(labels)
    for rule in rules:
        made.rules.add(**rule)
    return objects.put(kinds.ROLE if namespace else kinds.CLUSTER_ROLE, made)


ALLOWED = [
    (SCHEDULER, asked("create", "pods/binding", "default", "p")),
    (SCHEDULER, asked("patch", "pods/status", "default", "p")),
    (SCHEDULER, asked("update", "leases", "kube-system", "kube-scheduler", "coordination.k8s.io")),
    (SCHEDULER, asked("patch", "persistentvolumeclaims", "default", "c")),
    (SCHEDULER, asked("create", "events", "default", group="events.k8s.io")),
    (CONTROLLERS, asked("watch", "secrets")),
    (CONTROLLERS, asked("create", "pods", "default")),
    (CONTROLLERS, asked("update", "nodes/status", name="n")),
    (CONTROLLERS, asked("update", "replicasets/status", "default", "r", "apps")),
    (AUTOSCALER, asked("create", "pods/eviction", "default", "p")),
    (AUTOSCALER, asked("patch", "configmaps", "kube-system", "cluster-autoscaler-status")),
    (JANE, asked("create", "selfsubjectaccessreviews", group="authorization.k8s.io")),
    (JANE, path("get", "/apis/apps/v1")),
    (JANE, path("get", "/openapi/v2")),
    (ANONYMOUS, path("get", "/healthz")),
    (ANONYMOUS, path("get", "/version")),
    (User("x", ("kubeadm:cluster-admins",)), asked("delete", "nodes", name="n")),
]
REFUSED = [
    (SCHEDULER, asked("create", "pods", "default")),
    (SCHEDULER, asked("update", "nodes", name="n")),
    (SCHEDULER, asked("update", "leases", "default", "other", "coordination.k8s.io")),
    (SCHEDULER, asked("get", "secrets", "default", "s")),
    (CONTROLLERS, asked("create", "pods/binding", "default", "p")),
    (CONTROLLERS, asked("create", "clusterroles", group="rbac.authorization.k8s.io")),
    (AUTOSCALER, asked("get", "configmaps", "default", "cluster-autoscaler-status")),
    (JANE, asked("list", "pods", "default")),
    (JANE, path("post", "/apis/apps/v1")),
    (ANONYMOUS, path("get", "/apis")),
    (ANONYMOUS, path("get", "/metrics")),
    (ANONYMOUS, asked("create", "selfsubjectaccessreviews", group="authorization.k8s.io")),
    # A node's rights come from the Node authorizer alone.
    (User("system:node:n", ("system:nodes", AUTHENTICATED)), asked("get", "nodes", name="n")),
]


@pytest.mark.parametrize(("user", "attributes"), ALLOWED)
def test_what_built_in_roles_allow(objects: Objects, user: User, attributes: Attributes) -> None:
    decision = RBAC.over(objects).decide(user, attributes)
    assert decision.allowed
    assert decision.reason.startswith("RBAC: allowed by ")


@pytest.mark.parametrize(("user", "attributes"), REFUSED)
def test_what_built_in_roles_do_not_allow(objects: Objects, user: User, attributes: Attributes) -> None:
    assert not RBAC.over(objects).decide(user, attributes).allowed


def test_a_binding_counts_at_once_and_only_where_it_is(objects: Objects) -> None:
    rbac = RBAC.over(objects)
    here, there = asked("list", "pods", "team"), asked("list", "pods", "other")
    assert not rbac.decide(JANE, here).allowed
    bind(objects, "view", "Group:dev", "team")
    assert rbac.decide(JANE, here) == rbac.decide(JANE, here)
    assert rbac.decide(JANE, here).reason == (
        'RBAC: allowed by RoleBinding "Group:dev-view/team" of ClusterRole "view" to Group "dev"'
    )
    assert not rbac.decide(JANE, there).allowed
    assert not rbac.decide(JANE, asked("get", "secrets", "team")).allowed
    bind(objects, "view", "User:jane")
    assert rbac.decide(JANE, there).allowed


def test_the_index_is_made_once_between_changes(objects: Objects) -> None:
    rbac = RBAC.over(objects)
    for name in ("a", "b"):
        rbac.decide(JANE, asked("get", "pods", "default", name))
    made = objects.lists
    rbac.decide(JANE, asked("get", "nodes", name="c"))
    assert objects.lists == made
    bind(objects, "view", "User:joe")
    rbac.decide(JANE, asked("get", "pods", "default"))
    assert objects.lists == made + 4


def test_rules_with_names(objects: Objects) -> None:
    role(
        objects,
        "one",
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", ""]},
        namespace="team",
    )
    bind(objects, "one", "ServiceAccount:team:robot", "team", "Role")
    rbac, robot = RBAC.over(objects), User("system:serviceaccount:team:robot")
    assert rbac.decide(robot, asked("get", "secrets", "team", "a")).allowed
    assert not rbac.decide(robot, asked("get", "secrets", "team", "b")).allowed
    assert not rbac.decide(robot, asked("list", "secrets", "team")).allowed
    assert not rbac.decide(
        User("system:serviceaccount:other:robot"), asked("get", "secrets", "team", "a")
    ).allowed


def test_a_binding_to_a_missing_role_is_reported(objects: Objects) -> None:
    bind(objects, "missing", "User:jane")
    bind(objects, "gone", "User:jane", "team", "Role")
    decision = RBAC.over(objects).decide(JANE, asked("delete", "pods", "team", "p"))
    assert not decision.allowed
    assert decision.reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "missing" not found, '
        'role.rbac.authorization.k8s.io "gone" not found]'
    )


@pytest.mark.parametrize(
    ("resources", "resource", "matches"),
    [
        (["pods"], "pods", True),
        (["pods"], "pods/status", False),
        (["pods/status"], "pods/status", True),
        (["pods/status"], "pods", False),
        (["*"], "pods/status", True),
        (["*/status"], "pods/status", True),
        (["*/status"], "pods/log", False),
        (["pods/*"], "pods/log", False),
    ],
)
def test_resources(resources: list[str], resource: str, matches: bool) -> None:
    rule = Rule(("get",), ("",), tuple(resources))
    assert rule.allows(asked("get", resource)) is matches


@pytest.mark.parametrize(
    ("urls", "where", "matches"),
    [
        (["/a"], "/a", True),
        (["/a"], "/a/b", False),
        (["/a/*"], "/a/b", True),
        (["/a*"], "/ab", True),
        (["*"], "/", True),
    ],
)
def test_paths(urls: list[str], where: str, matches: bool) -> None:
    assert Rule(("get",), urls=tuple(urls)).allows(path("get", where)) is matches


def test_aggregated_roles_gather_through_floors(objects: Objects) -> None:
    rbac = RBAC.over(objects)
    bind(objects, "admin", "User:jane", "team")
    # From system:aggregate-to-view, which edit gathers through view, and admin through edit.
    assert rbac.decide(JANE, asked("get", "pods/log", "team", "p")).allowed
    assert rbac.decide(
        JANE, asked("create", "rolebindings", "team", group="rbac.authorization.k8s.io")
    ).allowed
    view = next(found.message for found in objects.list(kinds.CLUSTER_ROLE) if found.name == "view")
    own = role(
        objects,
        "widgets",
        {"verbs": ["get"], "apiGroups": ["x"], "resources": ["widgets"]},
        **{"rbac.authorization.k8s.io/aggregate-to-view": "true"},
    )
    everything = [found.message for found in objects.list(kinds.CLUSTER_ROLE)]
    assert own.rules[0] in aggregation.aggregate(view, everything)


def test_existing_roles_are_reconciled_and_not_replaced() -> None:
    desired = next(each for each in load().cluster_roles if each.metadata.name == "system:kube-scheduler")
    assert reconcile(desired, desired) is None
    lacking = pb.ClusterRole()
    lacking.CopyFrom(desired)
    own = lacking.rules.add(verbs=["get"], apiGroups=["x"], resources=["widgets"])
    del lacking.rules[0]
    result = reconcile(lacking, desired)
    assert result is not None
    assert own in result.rules
    assert desired.rules[0] in result.rules
    binding = load().cluster_role_bindings[0]
    bare = pb.ClusterRoleBinding()
    bare.CopyFrom(binding)
    del bare.subjects[:]
    again = reconcile(bare, binding)
    assert again is not None
    assert list(again.subjects) == list(binding.subjects)


@pytest.mark.parametrize(
    ("held", "desired", "missing"),
    [
        (Rule(("*",), ("*",), ("*",)), Rule(("get",), ("",), ("pods",)), []),
        (Rule(("get",), ("",), ("pods",)), Rule(("get", "list"), ("",), ("pods",)), ["list"]),
        (Rule(("get",), ("",), ("pods",), ("a",)), Rule(("get",), ("",), ("pods",)), ["get"]),
        (Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("pods",), ("a",)), []),
        (Rule(("get",), ("",), ("*/status",)), Rule(("get",), ("",), ("pods/status",)), []),
        (Rule(("get",), ("",), ("pods",)), Rule(("*",), ("",), ("pods",)), ["*"]),
        (Rule(("get",), urls=("/a/*",)), Rule(("get",), urls=("/a/b",)), []),
        (Rule(("get",), urls=("/a",)), Rule(("get",), urls=("/a/*",)), ["get"]),
    ],
)
def test_who_holds_what(held: Rule, desired: Rule, missing: list[str]) -> None:
    assert [rule.verbs[0] for rule in uncovered_rules([held], [desired])] == missing


def test_rules_are_printed_as_upstream_prints_them() -> None:
    rules = uncovered_rules([], [Rule(("get", "list"), ("",), ("pods",))])
    assert [str(rule) for rule in compact(rules)] == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
    ]


def test_masters_come_before_all_modes() -> None:
    deny = Union([AlwaysDeny()])
    assert deny.decide(ADMIN, asked("delete", "nodes", name="n")).allowed
    refused = deny.decide(JANE, asked("get", "pods", "default", "p"))
    assert (refused.allowed, refused.reason) == (False, "Everything is forbidden.")


@pytest.mark.parametrize(
    ("attributes", "reason", "message"),
    [
        (
            asked("list", "pods", "default"),
            "",
            'pods is forbidden: User "jane" cannot list resource "pods" in API group ""'
            ' in the namespace "default"',
        ),
        (
            asked("patch", "deployments/scale", "x", "d", "apps"),
            "because",
            'deployments.apps "d" is forbidden: User "jane" cannot patch resource "deployments/scale"'
            ' in API group "apps" in the namespace "x": because',
        ),
        (
            asked("list", "nodes"),
            "",
            'nodes is forbidden: User "jane" cannot list resource "nodes" in API group ""'
            " at the cluster scope",
        ),
        (path("get", "/metrics"), "", 'forbidden: User "jane" cannot get path "/metrics"'),
        (path("get", "/<a>"), "", 'forbidden: User "jane" cannot get path "/&lt;a&gt;"'),
    ],
)
def test_how_a_refusal_reads(attributes: Attributes, reason: str, message: str) -> None:
    error = forbidden(JANE, attributes, reason)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", message)
    assert error.details is not None
