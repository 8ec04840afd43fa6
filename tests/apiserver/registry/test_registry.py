"""Kinds, admission and bootstrap through the Registry on a real etcd."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nominee.apiserver.admission.chain import NAMES
from nominee.apiserver.objects.generate_name import ALPHABET
from nominee.apiserver.objects.requests import (
    Create,
    Delete,
    Get,
    List,
    ListOptions,
    Patch,
    PatchKind,
    Update,
    Watch,
    WatchOptions,
    WriteOptions,
)
from nominee.apiserver.process.bootstrap import bootstrap
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import coordination, core, events, meta, policy, scheduling, storage
from nominee.machinery.features.gates import DEFAULT, Version
from nominee.machinery.wire import codec
from tests.apiserver.cache.test_watch_cache import Bench, running
from tests.apiserver.registry.rules_player import QuickClock, registry_of
from tests.support.etcd import ThrowawayEtcd

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "img", "resources": {"limits": {"cpu": "1000m"}}}]},
}


async def started(bench: Bench, version: Version = DEFAULT, **more: Any) -> Registry:
    registry = registry_of(bench, version=version, disabled=(), **more)
    await bootstrap(registry)
    return registry


async def create(registry: Registry, kind: Kind[Any], document: dict[str, Any], **options: Any) -> Any:
    obj = codec.from_json(kind.message, document)
    namespace = "default" if kind.namespaced else ""
    return (await registry.perform(Create(kind, namespace, obj, WriteOptions(**options)))).object.message


async def put(registry: Registry, kind: Kind[Any], obj: Any, subresource: str = "") -> Any:
    return (
        await registry.perform(Update(kind, obj.metadata.namespace, obj.metadata.name, subresource, obj))
    ).object.message


def own(obj: Any) -> Any:
    """A copy that may be changed."""
    made = type(obj)()
    made.CopyFrom(obj)
    return made


async def test_bootstrap_makes_namespaces_and_system_priority_classes_once(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        first = await bench.storage.current_revision()
        await bootstrap(registry)
        assert await bench.storage.current_revision() == first
        names = {found.name for found in bench.cache.list(kinds.NAMESPACE)}
        assert names == {"default", "kube-system", "kube-public", "kube-node-lease"}
        values = {found.name: found.message.value for found in bench.cache.list(kinds.PRIORITY_CLASS)}
        assert values == {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
        namespace = (await registry.perform(Get(kinds.NAMESPACE, "", "default"))).message
        assert namespace.metadata.labels["kubernetes.io/metadata.name"] == "default"
        assert list(namespace.spec.finalizers) == ["kubernetes"]


async def test_a_new_pod_gets_defaults_priority_tolerations_and_identity(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        pod: core.Pod = await create(registry, kinds.POD, POD)
        assert pod.metadata.uid
        assert pod.metadata.creationTimestamp.seconds
        assert pod.metadata.generation == 1
        container = pod.spec.containers[0]
        assert container.resources.requests["cpu"].string == "1"
        assert container.imagePullPolicy == "Always"
        assert (pod.spec.priority, pod.spec.preemptionPolicy) == (0, "PreemptLowerPriority")
        tolerations = [(t.key, t.effect, t.tolerationSeconds) for t in pod.spec.tolerations]
        assert tolerations == [
            ("node.kubernetes.io/not-ready", "NoExecute", 300),
            ("node.kubernetes.io/unreachable", "NoExecute", 300),
        ]
        assert (pod.status.phase, pod.status.qosClass) == ("Pending", "Burstable")


async def test_priority_comes_from_the_named_class_and_from_the_default(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        await create(registry, kinds.PRIORITY_CLASS, {
            "metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})  # fmt: skip
        document = {"metadata": {"name": "std"}, "value": 7, "globalDefault": True}
        await create(registry, kinds.PRIORITY_CLASS, document)
        named = await create(registry, kinds.POD, {
            **POD, "spec": {**POD["spec"], "priorityClassName": "high"}})  # fmt: skip
        assert (named.spec.priority, named.spec.preemptionPolicy) == (1000, "Never")
        plain = await create(registry, kinds.POD, {**POD, "metadata": {"name": "q"}})
        assert (plain.spec.priority, plain.spec.priorityClassName) == (7, "std")
        with pytest.raises(StatusError, match="Only one default can exist"):
            await create(registry, kinds.PRIORITY_CLASS, {
                "metadata": {"name": "two"}, "value": 8, "globalDefault": True})  # fmt: skip
        with pytest.raises(StatusError) as caught:
            await create(registry, kinds.POD, {
                "metadata": {"name": "r"}, "spec": {**POD["spec"], "priorityClassName": "nope"}})  # fmt: skip
        assert caught.value.message == 'pods "r" is forbidden: no PriorityClass with name nope was found'


async def test_a_server_with_the_same_seed_makes_other_uids_later(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        uids = []
        for name, later in (("a", 0.0), ("b", 60.0)):
            clock = QuickClock()
            clock.set(clock.now() + later)
            registry = registry_of(bench, disabled=NAMES, clock=clock, rng=random.Random(5))
            uids.append((await create(registry, kinds.CONFIG_MAP, {"metadata": {"name": name}})).metadata.uid)
        assert len(set(uids)) == 2


class Repeating(random.Random):
    """Generates the same name `times` times, and then others."""

    def __init__(self, times: int) -> None:
        super().__init__(1)
        self.times = times
        self.asked = 0

    def choices(self, population: Any, *args: Any, **more: Any) -> list[Any]:
        self.asked += 1
        return ["b"] * 5 if self.asked <= self.times else super().choices(population, *args, **more)


@pytest.mark.parametrize(("taken", "asked"), [(1, 2), (7, 8)])
async def test_a_generated_name_that_is_taken_is_generated_again(
    etcd: ThrowawayEtcd, taken: int, asked: int
) -> None:
    async with running(etcd) as bench:
        rng = Repeating(taken)
        registry = await started(bench, rng=rng)
        await create(registry, kinds.CONFIG_MAP, {"metadata": {"name": "web-bbbbb"}})
        made = await create(registry, kinds.CONFIG_MAP, {"metadata": {"generateName": "web-"}})
        suffix = made.metadata.name.removeprefix("web-")
        assert len(suffix) == 5
        assert set(suffix) <= set(ALPHABET)
        assert rng.asked == asked


async def test_after_eight_taken_names_the_server_gives_up(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        rng = Repeating(100)
        registry = await started(bench, rng=rng)
        await create(registry, kinds.CONFIG_MAP, {"metadata": {"name": "web-bbbbb"}})
        with pytest.raises(StatusError, match="not able to generate a unique name") as caught:
            await create(registry, kinds.CONFIG_MAP, {"metadata": {"generateName": "web-"}})
        assert (caught.value.code, rng.asked) == (409, 8)


async def test_a_namespace_goes_when_its_finalizer_does_and_takes_nothing_new(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        with pytest.raises(StatusError) as missing:
            await registry.perform(Create(kinds.CONFIG_MAP, "team", codec.from_json(
                core.ConfigMap, {"metadata": {"name": "c"}})))  # fmt: skip
        assert missing.value.message == 'namespaces "team" not found'
        await create(registry, kinds.NAMESPACE, {"metadata": {"name": "team"}})
        result = await registry.perform(Delete(kinds.NAMESPACE, "", "team", meta.DeleteOptions()))
        assert not result.deleted
        assert result.object.message.status.phase == "Terminating"
        with pytest.raises(StatusError) as refused:
            await registry.perform(Create(kinds.CONFIG_MAP, "team", codec.from_json(
                core.ConfigMap, {"metadata": {"name": "c"}})))  # fmt: skip
        assert refused.value.message == (
            'configmaps "c" is forbidden: unable to create new content in namespace team because it is being'
            " terminated"
        )
        assert [(c.reason, c.field) for c in refused.value.causes] == [
            ("NamespaceTerminating", "metadata.namespace")
        ]
        namespace = own((await registry.perform(Get(kinds.NAMESPACE, "", "team"))).message)
        del namespace.spec.finalizers[:]
        await put(registry, kinds.NAMESPACE, namespace, "finalize")
        assert await bench.storage.get("/registry/namespaces/team") is None
        with pytest.raises(StatusError, match="this namespace may not be deleted"):
            await registry.perform(Delete(kinds.NAMESPACE, "", "default", meta.DeleteOptions()))


async def test_nothing_is_listed_in_a_namespace_that_is_in_none(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        for asked in (
            registry.perform(List(kinds.NAMESPACE, "default", ListOptions())),
            registry.perform(Watch(kinds.NAMESPACE, "default", WatchOptions())),
        ):
            with pytest.raises(StatusError, match="could not find the requested resource"):
                await asked


async def test_events_of_both_groups_are_one_store(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        event = codec.from_json(events.Event, {
            "metadata": {"name": "e"}, "eventTime": "2026-11-21T04:05:06.000007Z", "reason": "Scheduled",
            "action": "Binding", "type": "Normal", "note": "bound", "reportingController": "scheduler",
            "reportingInstance": "s-1", "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
            "series": {"count": 2, "lastObservedTime": "2026-11-21T04:05:07.000000Z"}})  # fmt: skip
        made = (await registry.perform(Create(kinds.EVENTS_EVENT, "default", event))).object
        assert made.message.note == "bound"
        value = await bench.storage.get("/registry/events/default/e")
        assert value is not None
        stored = (await registry.perform(Get(kinds.EVENT, "default", "e"))).message
        assert (stored.message, stored.involvedObject.name, stored.series.count) == ("bound", "p", 2)
        shown = (await registry.perform(Get(kinds.EVENTS_EVENT, "default", "e"))).message
        assert (shown.regarding.name, shown.series.count, shown.reportingController) == ("p", 2, "scheduler")
        patch = b'{"series":{"count":3}}'
        patched = (
            await registry.perform(Patch(kinds.EVENTS_EVENT, "default", "e", "", PatchKind.MERGE, patch))
        ).object
        assert patched.message.series.count == 3
        with pytest.raises(StatusError, match="does not match event"):
            await create(registry, kinds.EVENT, {
                "metadata": {"name": "f"}, "involvedObject": {"namespace": "other"}})  # fmt: skip


async def test_a_lease_may_be_created_by_put_and_needs_its_version_to_change(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        lease = codec.from_json(coordination.Lease, {
            "metadata": {"name": "n", "namespace": "default"}, "spec": {"holderIdentity": "a"}})  # fmt: skip
        made = own(await put(registry, kinds.LEASE, lease))
        made.spec.holderIdentity = "b"
        assert (await put(registry, kinds.LEASE, made)).spec.holderIdentity == "b"
        with pytest.raises(StatusError) as caught:
            await put(registry, kinds.LEASE, made)
        assert errors.is_conflict(caught.value)


async def test_nodes_and_volumes_get_what_admission_adds(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        node = await create(registry, kinds.NODE, {
            "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "pods": "110"}}})  # fmt: skip
        assert [(t.key, t.effect) for t in node.spec.taints] == [
            ("node.kubernetes.io/not-ready", "NoSchedule")
        ]
        assert node.status.allocatable["pods"].string == "110"
        claim = await create(registry, kinds.PERSISTENT_VOLUME_CLAIM, {
            "metadata": {"name": "c"}, "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}})  # fmt: skip
        assert list(claim.metadata.finalizers) == ["kubernetes.io/pvc-protection"]
        assert (claim.status.phase, claim.spec.volumeMode) == ("Pending", "Filesystem")
        result = await registry.perform(
            Delete(kinds.PERSISTENT_VOLUME_CLAIM, "default", "c", meta.DeleteOptions(gracePeriodSeconds=0))
        )
        assert not result.deleted
        left = own((await registry.perform(Get(kinds.PERSISTENT_VOLUME_CLAIM, "default", "c"))).message)
        assert left.metadata.HasField("deletionTimestamp")
        del left.metadata.finalizers[:]
        await put(registry, kinds.PERSISTENT_VOLUME_CLAIM, left)
        assert await bench.storage.get(kinds.PERSISTENT_VOLUME_CLAIM.key("default", "c")) is None
        made = await create(registry, kinds.STORAGE_CLASS, {"metadata": {"name": "s"}, "provisioner": "x/y"})
        assert (made.reclaimPolicy, made.volumeBindingMode) == ("Delete", "Immediate")
        assert isinstance(made, storage.StorageClass)


async def test_the_generation_of_a_budget_counts_its_specs(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        made: policy.PodDisruptionBudget = own(await create(registry, kinds.POD_DISRUPTION_BUDGET, {
            "metadata": {"name": "b"}, "spec": {"minAvailable": 1}}))  # fmt: skip
        assert made.metadata.generation == 1
        made.status.disruptionsAllowed = 3
        kept = own(await put(registry, kinds.POD_DISRUPTION_BUDGET, made))
        assert (kept.status.disruptionsAllowed, kept.metadata.generation) == (0, 1)
        kept.status.disruptionsAllowed = 3
        kept.spec.minAvailable.intVal = 9
        by_status = own(await put(registry, kinds.POD_DISRUPTION_BUDGET, kept, "status"))
        assert (by_status.status.disruptionsAllowed, by_status.spec.minAvailable.intVal) == (3, 1)
        by_status.spec.minAvailable.intVal = 2
        changed = await put(registry, kinds.POD_DISRUPTION_BUDGET, by_status)
        assert (changed.metadata.generation, changed.status.disruptionsAllowed) == (2, 3)


async def test_patches_apply_to_the_newest_object_and_respect_a_version(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        await create(registry, kinds.POD, POD)
        patch = (
            b'{"status":{"nominatedNodeName":"n1","conditions":[{"type":"PodScheduled","status":"False"}]}}'
        )
        done = (
            await registry.perform(Patch(kinds.POD, "default", "p", "status", PatchKind.STRATEGIC, patch))
        ).object
        assert done.message.status.nominatedNodeName == "n1"
        before = done.revision
        cleared = b'{"status":{"nominatedNodeName":null}}'
        done = (
            await registry.perform(Patch(kinds.POD, "default", "p", "status", PatchKind.STRATEGIC, cleared))
        ).object
        assert done.message.status.nominatedNodeName == ""
        assert done.message.status.conditions[0].type == "PodScheduled"
        stale = b'{"metadata":{"resourceVersion":"%d"},"status":{"message":"m"}}' % before
        with pytest.raises(StatusError) as caught:
            await registry.perform(Patch(kinds.POD, "default", "p", "status", PatchKind.STRATEGIC, stale))
        assert errors.is_conflict(caught.value)


async def test_a_dry_run_checks_everything_and_stores_nothing(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        revision = await bench.storage.current_revision()
        pod = await create(registry, kinds.POD, POD, dry_run=True)
        assert pod.status.phase == "Pending"
        assert await bench.storage.current_revision() == revision
        await create(registry, kinds.POD, POD)
        with pytest.raises(StatusError) as caught:
            await create(registry, kinds.POD, POD, dry_run=True)
        assert errors.is_already_exists(caught.value)


@pytest.mark.parametrize(("version", "kept"), [(Version(1, 36), False), (Version(1, 38), True)])
async def test_an_older_server_drops_fields_that_it_does_not_know(
    etcd: ThrowawayEtcd, version: Version, kept: bool
) -> None:
    async with running(etcd) as bench:
        registry = await started(bench, version)
        node = core.Node()
        node.metadata.name = "n"
        node.spec.podPreemptionPolicy.SetInParent()
        made = (await registry.perform(Create(kinds.NODE, "", node))).object.message
        assert made.spec.HasField("podPreemptionPolicy") == kept


async def test_a_pod_level_request_is_dropped_where_the_gate_is_off(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench, Version(1, 33))
        document = {**POD, "spec": {**POD["spec"], "resources": {"requests": {"cpu": "2"}}}}
        assert not (await create(registry, kinds.POD, document)).spec.HasField("resources")


async def test_system_classes_cannot_be_imitated(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        for name, value in (("system-mine", 5), ("mine", 1_000_000_001)):
            with pytest.raises(StatusError) as caught:
                await create(registry, kinds.PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})
            assert caught.value.reason == "Invalid"
        with pytest.raises(StatusError, match="this is a system priority class and cannot be deleted"):
            await registry.perform(
                Delete(kinds.PRIORITY_CLASS, "", "system-node-critical", meta.DeleteOptions())
            )
        kept = await registry.perform(Get(kinds.PRIORITY_CLASS, "", "system-node-critical"))
        assert isinstance(kept.message, scheduling.PriorityClass)
