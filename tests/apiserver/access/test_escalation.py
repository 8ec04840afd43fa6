"""No user can grant permissions that it does not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nominee.apiserver.access.authorizer import Union
from nominee.apiserver.access.rbac import aggregation
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.access.rbac.bootstrap_policy import load
from nominee.apiserver.admission.interface import AdmissionRequest
from nominee.apiserver.admission.permissions.escalation import Escalation
from nominee.apiserver.objects.attributes import SERVER, Origin
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import rbac as pb
from tests.apiserver.access.fakes import Objects
from tests.apiserver.access.test_rbac import JANE, bind, role, store

ROLES = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "clusterroles"]}


BY_JANE = Origin(JANE)


@pytest.fixture
def objects() -> Objects:
    made, policy = Objects(), load()
    aggregation.settle(policy.cluster_roles)
    store(made, policy)
    bind(made, "view", "User:jane")
    return made


@pytest.fixture
def plugin(objects: Objects) -> Escalation:
    rbac = RBAC.over(objects)
    return Escalation(rbac, Union([rbac]))


def granting(*verbs: str, resource: str = "pods", cluster: bool = False) -> AdmissionRequest:
    """The creation of a role."""
    made: Any = pb.ClusterRole() if cluster else pb.Role()
    made.metadata.name, made.metadata.namespace = "r", "" if cluster else "team"
    made.rules.add(verbs=verbs, apiGroups=[""], resources=[resource])
    kind = kinds.CLUSTER_ROLE if cluster else kinds.ROLE
    return AdmissionRequest("CREATE", kind, made.metadata.namespace, "r", "", made, origin=BY_JANE)


def binding(name: str, kind: str = "ClusterRole") -> AdmissionRequest:
    made = pb.RoleBinding()
    made.metadata.name, made.metadata.namespace = "b", "team"
    made.roleRef.kind, made.roleRef.name = kind, name
    return AdmissionRequest("CREATE", kinds.ROLE_BINDING, "team", "b", "", made, origin=BY_JANE)


async def test_what_one_has_one_may_grant(plugin: Escalation, objects: Objects) -> None:
    await plugin.admit(granting("get", "list"), objects.lookup)
    await plugin.admit(binding("view"), objects.lookup)


async def test_and_no_more(plugin: Escalation, objects: Objects) -> None:
    with pytest.raises(StatusError) as refused:
        await plugin.admit(granting("get", "delete", "create"), objects.lookup)
    assert refused.value.code == 403
    assert refused.value.message == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "jane"'
        ' (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions'
        " not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "create"]}'
    )
    with pytest.raises(StatusError, match="attempting to grant"):
        await plugin.admit(binding("edit"), objects.lookup)
    with pytest.raises(
        StatusError, match=r'clusterrole\.rbac\.authorization\.k8s\.io "none" not found'
    ) as missing:
        await plugin.admit(binding("none"), objects.lookup)
    assert missing.value.code == 404
    await plugin.admit(replace(granting("*", resource="*"), origin=SERVER), objects.lookup)


async def test_the_verbs_escalate_and_bind(plugin: Escalation, objects: Objects) -> None:
    role(
        objects,
        "grants",
        {"verbs": ["escalate"], **ROLES},
        {"verbs": ["bind"], **ROLES, "resourceNames": ["edit"]},
    )
    bind(objects, "grants", "User:jane")
    await plugin.admit(granting("*", resource="*"), objects.lookup)
    await plugin.admit(binding("edit"), objects.lookup)
    with pytest.raises(StatusError, match="attempting to grant"):
        await plugin.admit(binding("cluster-admin"), objects.lookup)


async def test_a_gathering_role_needs_everything(plugin: Escalation, objects: Objects) -> None:
    wanted = granting("get", cluster=True)
    wanted.obj.aggregationRule.clusterRoleSelectors.add().matchLabels["a"] = "b"
    with pytest.raises(StatusError, match="must have cluster-admin privileges to use the aggregationRule"):
        await plugin.admit(wanted, objects.lookup)


async def test_garbage_collection_may_take_finalizers(plugin: Escalation, objects: Objects) -> None:
    old = granting("*", resource="*").obj
    old.metadata.finalizers.append("x/y")
    new = pb.Role()
    new.CopyFrom(old)
    del new.metadata.finalizers[:]
    await plugin.admit(
        AdmissionRequest("UPDATE", kinds.ROLE, "team", "r", "", new, old, origin=BY_JANE), objects.lookup
    )
    new.metadata.labels["a"] = "b"
    with pytest.raises(StatusError, match="attempting to grant"):
        await plugin.admit(
            AdmissionRequest("UPDATE", kinds.ROLE, "team", "r", "", new, old, origin=BY_JANE), objects.lookup
        )
