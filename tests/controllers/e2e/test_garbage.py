"""Garbage collection by owners, and namespaces, over real processes."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import controller_of, get_condition, metadata_of
from nominee.machinery.api.pb import autoscaling, core, networking, rbac, scheduling
from nominee.machinery.wire import codec
from tests.controllers.builders import node, owned_by, pod, replica_set
from tests.controllers.e2e.support import Lab, running
from tests.support.cluster import Cluster


async def test_dependents_are_deleted_after_their_owner(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(replica_set(replicas=2))
        await lab.listed(kinds.POD, lambda pods: len(pods) == 2)
        await lab.client.delete(kinds.REPLICA_SET, "web", "default", propagation_policy="Background")
        await lab.gone(kinds.REPLICA_SET, "web")
        await lab.listed(kinds.POD, lambda pods: not pods)


async def test_dependents_are_deleted_before_an_owner_that_waits(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        await lab.create(node())
        await lab.create(replica_set(replicas=1))
        made = (await lab.listed(kinds.POD, lambda pods: len(pods) == 1))[0]
        await lab.run_pod(made, "n1")
        await lab.client.delete(kinds.REPLICA_SET, "web", "default", propagation_policy="Foreground")
        # The pod has its grace; its owner stays as long.
        await lab.object(kinds.POD, made.metadata.name, lambda p: p.metadata.HasField("deletionTimestamp"))
        owner = await lab.get(kinds.REPLICA_SET, "web")
        assert owner is not None
        assert list(owner.metadata.finalizers) == ["foregroundDeletion"]
        await lab.client.delete(kinds.POD, made.metadata.name, "default", grace_period_seconds=0)
        await lab.gone(kinds.REPLICA_SET, "web")


async def test_orphaned_dependents_stay(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        await lab.create(replica_set(replicas=2))
        await lab.listed(kinds.POD, lambda pods: len(pods) == 2)
        await lab.client.delete(kinds.REPLICA_SET, "web", "default", propagation_policy="Orphan")
        await lab.gone(kinds.REPLICA_SET, "web")
        pods = await lab.all(kinds.POD)
        assert len(pods) == 2
        assert all(controller_of(p) is None for p in pods)


async def test_only_the_owners_uid_counts(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        living = await lab.create(replica_set(replicas=0))
        # A label that the set does not select: only the reference ties it.
        false = await lab.create(pod("false", owners=[owned_by("some-other-uid")]))
        both = [owned_by("some-other-uid"), owned_by(living.metadata.uid) | {"controller": False}]
        await lab.create(pod("mixed", owners=both))
        await lab.create(pod("foreign", owners=[owned_by("x", kind="Unheard")]))
        await lab.gone(kinds.POD, false.metadata.name)
        mixed = await lab.object(kinds.POD, "mixed", lambda p: len(p.metadata.ownerReferences) == 1)
        assert mixed.metadata.ownerReferences[0].uid == living.metadata.uid
        assert await lab.get(kinds.POD, "foreign") is not None


@pytest.mark.parametrize("killed", [False, True])
async def test_a_namespace_is_deleted_with_its_content(cluster: Cluster, killed: bool) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        await lab.create(codec.from_json(core.Namespace, {"metadata": {"name": "team"}}))
        await lab.create(node())
        ending = await lab.create(pod("ending", namespace="team"))
        await lab.run_pod(ending, "n1")
        await lab.create(
            codec.from_json(core.ConfigMap, {"metadata": {"name": "config", "namespace": "team"}})
        )
        if killed:
            lab.arm("controllers.namespace.finalize.before", "crash")
        await lab.client.delete(kinds.NAMESPACE, "team")

        def remaining(found: core.Namespace) -> bool:
            row = get_condition(found.status.conditions, "NamespaceContentRemaining")
            return row is not None and row.status == "True" and "pods. has 1" in row.message

        waiting = await lab.object(kinds.NAMESPACE, "team", remaining)
        assert waiting.status.phase == "Terminating"
        assert list(waiting.spec.finalizers) == ["kubernetes"]
        await lab.client.delete(kinds.POD, "ending", "team", grace_period_seconds=0)
        if killed:
            assert await cluster.exited("controllers") == -9
            await cluster.start("controllers")
        await lab.gone(kinds.NAMESPACE, "team")
        assert not (await lab.client.list(kinds.CONFIG_MAP, "team")).items


def _config_map(name: str) -> core.ConfigMap:
    return codec.from_json(core.ConfigMap, {"metadata": {"name": name, "namespace": "default"}})


async def _own(lab: Lab, dependent: str, *owners: core.ConfigMap) -> None:
    rows = [owned_by(o.metadata.uid, kind="ConfigMap", name=o.metadata.name) for o in owners]
    change = {"metadata": {"ownerReferences": [row | {"controller": False} for row in rows]}}
    await lab.client.patch(kinds.CONFIG_MAP, dependent, "default", change)


@pytest.mark.parametrize("size", [2, 3])
async def test_a_cycle_of_owners_is_deleted(cluster: Cluster, size: int) -> None:
    async with running(cluster) as lab:
        made = [await lab.create(_config_map(f"c{i}")) for i in range(size)]
        for i, one in enumerate(made):
            await _own(lab, one.metadata.name, made[i - 1])
        await lab.client.delete(kinds.CONFIG_MAP, "c0", "default", propagation_policy="Foreground")
        for one in made:
            await lab.gone(kinds.CONFIG_MAP, one.metadata.name)


async def test_a_waiting_owner_is_deleted_when_its_dependent_has_another_owner(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        goes, stays = await lab.create(_config_map("goes")), await lab.create(_config_map("stays"))
        await lab.create(_config_map("dependent"))
        await _own(lab, "dependent", goes, stays)
        await lab.client.delete(kinds.CONFIG_MAP, "goes", "default", propagation_policy="Foreground")
        await lab.gone(kinds.CONFIG_MAP, "goes")
        left = await lab.get(kinds.CONFIG_MAP, "dependent")
        assert left is not None
        assert [owner.name for owner in left.metadata.ownerReferences] == ["stays"]


def _of_all_kinds(name: str) -> list[Message]:
    """Return objects of kinds on which no other controller waits."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}
    bare = {"metadata": {"name": name, "namespace": "default"}}
    return [
        codec.from_json(core.Namespace, {"metadata": {"name": name}}),
        codec.from_json(core.ServiceAccount, bare),
        codec.from_json(core.LimitRange, {**bare, "spec": {}}),
        codec.from_json(rbac.ClusterRole, {"metadata": {"name": name}}),
        codec.from_json(scheduling.PriorityClass, {"metadata": {"name": name}, "value": 1}),
        codec.from_json(networking.IngressClass, {"metadata": {"name": name}, "spec": {"controller": "a/b"}}),
        codec.from_json(
            autoscaling.HorizontalPodAutoscaler,
            {**bare, "spec": {"scaleTargetRef": target, "maxReplicas": 1}},
        ),
    ]


@pytest.mark.parametrize("policy", ["Foreground", "Orphan"])
async def test_objects_of_all_kinds_are_deleted_with_each_policy(cluster: Cluster, policy: str) -> None:
    """Source: garbagecollector.go, which leaves only Events alone (DefaultIgnoredResources)."""
    async with running(cluster) as lab:
        made = [await lab.create(obj) for obj in _of_all_kinds("of-any-kind")]
        for obj in made:
            kind, metadata = kinds.of(obj), metadata_of(obj)
            await lab.client.delete(kind, metadata.name, metadata.namespace, propagation_policy=policy)
        for obj in made:
            await lab.gone(kinds.of(obj), "of-any-kind")


async def test_owner_and_dependent_may_be_of_any_kind(cluster: Cluster) -> None:
    """Source: concepts/architecture/garbage-collection, "Owners and dependents"."""
    async with running(cluster) as lab:
        owner = await lab.create(_config_map("owner"))
        row = owned_by(owner.metadata.uid, kind="ConfigMap", name="owner") | {"controller": False}
        owned = {"name": "owned", "namespace": "default", "ownerReferences": [row]}
        await lab.create(codec.from_json(core.ServiceAccount, {"metadata": owned}))
        await lab.client.delete(kinds.CONFIG_MAP, "owner", "default", propagation_policy="Background")
        await lab.gone(kinds.SERVICE_ACCOUNT, "owned")
