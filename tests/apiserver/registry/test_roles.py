"""Roles and bindings through the Registry, and what a cluster with RBAC begins with."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from nominee.apiserver.access.rbac import aggregation
from nominee.apiserver.access.rbac import bootstrap as rbac_bootstrap
from nominee.apiserver.access.rbac.authorizer import RBAC
from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.requests import Patch, PatchKind, Update, WriteOptions
from nominee.apiserver.objects.user import User
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.features.gates import DEFAULT, Gates
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import codec
from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.registry.test_registry import create, own, put, started
from tests.support.etcd import ThrowawayEtcd
from tests.support.patience import PATIENCE_SECONDS

RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
REFERENCE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
ROLE_KINDS: dict[str, Kind[Any]] = {
    "Role": kinds.ROLE,
    "ClusterRole": kinds.CLUSTER_ROLE,
    "RoleBinding": kinds.ROLE_BINDING,
    "ClusterRoleBinding": kinds.CLUSTER_ROLE_BINDING,
}
INVALID = [
    (
        "Role",
        {"rules": [{**RULE, "verbs": []}]},
        "rules[0].verbs: Required value: verbs must contain at least one value",
    ),
    (
        "Role",
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/a"]}]},
        'rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs',
    ),
    (
        "ClusterRole",
        {"rules": [{**RULE, "nonResourceURLs": ["/a"]}]},
        'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and'
        " non-resource URLs",
    ),
    (
        "ClusterRole",
        {"rules": [{"verbs": ["get"]}]},
        "[rules[0].apiGroups: Required value: resource rules must supply at least one api group,"
        " rules[0].resources: Required value: resource rules must supply at least one resource]",
    ),
    (
        "ClusterRole",
        {"aggregationRule": {}},
        "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if"
        " aggregationRule is non-nil",
    ),
    (
        "ClusterRoleBinding",
        {"roleRef": {**REFERENCE, "kind": "Role"}},
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
    ),
    (
        "RoleBinding",
        {"roleRef": {**REFERENCE, "name": ""}, "subjects": [{"kind": "Thing", "name": "x"}]},
        '[roleRef.name: Required value, subjects[0].kind: Unsupported value: "Thing":'
        ' supported values: "Group", "ServiceAccount", "User"]',
    ),
    (
        "ClusterRoleBinding",
        {"roleRef": REFERENCE, "subjects": [{"kind": "ServiceAccount", "name": "x"}]},
        "subjects[0].namespace: Required value",
    ),
]


@pytest.mark.parametrize(("kind", "document", "problem"), INVALID)
async def test_invalid(etcd: ThrowawayEtcd, kind: str, document: dict[str, Any], problem: str) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        with pytest.raises(StatusError) as refused:
            await create(registry, ROLE_KINDS[kind], {"metadata": {"name": "a:b"}, **document})
        assert (refused.value.code, refused.value.message) == (
            422,
            f'{kind}.rbac.authorization.k8s.io "a:b" is invalid: {problem}',
        )


async def test_a_binding_keeps_its_role(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        bound = await create(
            registry,
            kinds.ROLE_BINDING,
            {
                "metadata": {"name": "b"},
                "roleRef": {"kind": "ClusterRole", "name": "view"},
                "subjects": [{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount", "name": "robot"}],
            },
        )
        groups = [bound.roleRef.apiGroup, *(subject.apiGroup for subject in bound.subjects)]
        assert groups == ["rbac.authorization.k8s.io", "rbac.authorization.k8s.io", ""]
        other = own(bound)
        other.roleRef.name = "edit"
        with pytest.raises(StatusError, match="cannot change roleRef"):
            await put(registry, kinds.ROLE_BINDING, other)


async def test_an_update_that_creates_needs_the_right_to_create(etcd: ThrowawayEtcd) -> None:
    asked: list[Attributes] = []

    def authorize(user: User, attributes: Attributes) -> None:
        asked.append(attributes)
        raise errors.forbidden(kinds.ROLE, attributes.name, "no")

    async with running(etcd) as bench:
        free = await started(bench)
        made = await create(free, kinds.ROLE, {"metadata": {"name": "old"}, "rules": [RULE]})
        bound = Registry(
            bench.storage, bench.cache, Reads(bench.storage, bench.cache, fields_of),
            gates=Gates("apiserver", DEFAULT),
            clock=SystemClock(), rng=random.Random(1), authorize=authorize,
        )  # fmt: skip
        await put(bound, kinds.ROLE, own(made))
        assert asked == []
        new = codec.from_json(kinds.ROLE.message, {"metadata": {"name": "new", "namespace": "default"}})
        patch = b'{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "new"}}'
        options = WriteOptions(field_manager="test")
        for write in (
            bound.perform(Update(kinds.ROLE, "default", "new", "", new)),
            bound.perform(Patch(kinds.ROLE, "default", "new", "", PatchKind.APPLY, patch, options)),
        ):
            with pytest.raises(StatusError, match="is forbidden: no"):
                await write
        wanted = Attributes("create", "roles", "rbac.authorization.k8s.io", "v1", "", "default", "new")
        assert asked == [wanted, wanted]


async def test_what_a_cluster_begins_with(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        await rbac_bootstrap.bootstrap(registry, bench.cache)
        first = await bench.storage.current_revision()
        await rbac_bootstrap.bootstrap(registry, bench.cache)
        assert await bench.storage.current_revision() == first
        rbac = RBAC.over(bench.cache)
        bind = Attributes("create", "pods", "", "v1", "binding", "default", "p")
        assert rbac.decide(User("system:kube-scheduler"), bind).allowed
        assert not rbac.decide(User("jane"), bind).allowed


async def test_aggregated_roles_follow(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        await rbac_bootstrap.bootstrap(registry, bench.cache)
        gathered = anyio.Event()

        async def wait_for_rule() -> None:
            async with bench.cache.watch(kinds.CLUSTER_ROLE) as watcher:
                async for _ in watcher:
                    found = bench.cache.get(kinds.CLUSTER_ROLE, "", "admin")
                    assert found is not None
                    if any("widgets" in rule.resources for rule in found.message.rules):
                        gathered.set()
                        return

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(aggregation.run, registry, bench.cache, SystemClock())
                group.start_soon(wait_for_rule)
                await create(
                    registry,
                    kinds.CLUSTER_ROLE,
                    {
                        "metadata": {
                            "name": "widgets",
                            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
                        },
                        "rules": [{**RULE, "resources": ["widgets"]}],
                    },
                )
                await gathered.wait()
                group.cancel_scope.cancel()
