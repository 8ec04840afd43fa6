"""The controllers: informers that are behind, calls that fail, and handlers of what was not seen."""

from __future__ import annotations

import pytest

from nominee.controllers.deployments.rollout import is_own
from nominee.controllers.devices.shell.claims import ResourceClaimController
from nominee.controllers.disruption.budget import status_of
from nominee.controllers.disruption.shell.disruption import Disruption
from nominee.controllers.garbage.ownership import Owner
from nominee.controllers.garbage.shell.collector import GarbageCollector
from nominee.controllers.garbage.shell.pod_gc import PodGarbageCollector
from nominee.controllers.nodes.shell.eviction import TaintEviction
from nominee.controllers.nodes.shell.lifecycle import NodeLifecycle
from nominee.controllers.owned_pods.expectations import Expectations
from nominee.controllers.quotas.shell.quotas import QuotaController
from nominee.controllers.replica_sets.shell.replica_sets import ReplicaSetController
from nominee.controllers.shell.controller import Context
from nominee.controllers.volumes.shell.binder import VolumeController
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import ObjectKey, copy_of, key_of, owner_reference
from nominee.machinery.api.pb import apps, core, devices, policy
from nominee.machinery.runtime.clock import FakeClock, to_time
from tests.controllers.builders import condition, node, owned_by, pod, replica_set, stamp
from tests.controllers.contexts import context_of
from tests.support.fake_api import FakeApi

WEB = ObjectKey("default", "web")
SILENT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def stage(*stored: core.Pod | core.Node | core.PersistentVolumeClaim | apps.ReplicaSet) -> Context:
    """Return the context of controllers whose informers do not have what the API server has."""
    return context_of(FakeApi.of(*stored), FakeClock())


async def test_a_deletion_that_was_refused_is_not_expected() -> None:
    api = FakeApi(rejections={"delete": [errors.service_unavailable("away")]})
    controller = ReplicaSetController(context_of(api, FakeClock()))
    with pytest.raises(StatusError):
        await controller.delete_pod(replica_set(uid="s"), pod(uid="u"))
    assert controller.expectations.satisfied(WEB, 0.0)


def test_creations_alone_are_waited_for() -> None:
    expected = Expectations()
    expected.expect(WEB, 0.0, created="u")
    assert not expected.satisfied(WEB, 1.0)


def test_a_set_is_reconciled_for_a_pod_that_was_not_seen_to_terminate() -> None:
    controller = ReplicaSetController(stage())
    controller._pod_gone(pod(uid="u", owners=[owned_by("s")]))
    assert controller.queue.get_nowait() == WEB


async def test_pods_are_set_to_not_ready_each_time_that_their_node_is_silent() -> None:
    api, clock = FakeApi(), FakeClock()
    context = context_of(api, clock)
    pods = context.informers.of(kinds.POD)
    controller = NodeLifecycle(
        context, pods, monitor_seconds=1.0, grace_seconds=10.0, startup_grace_seconds=10.0
    )
    for beat in (1, 2):
        pods._put(api.put(pod(uid="u", node="n1", ready=True)))
        seen = api.put(node(conditions=[condition("Ready", lastHeartbeatTime=stamp(beat))]))
        await controller._look([seen])
        await clock.advance(11)
        await controller._look([seen])
    assert sum(request.key == "default/p" for request in api.requests) == 2


async def test_an_owner_that_only_the_api_server_has_is_not_absent() -> None:
    owner = replica_set(uid="s")
    dependent = pod(uid="u", owners=[owned_by("s")])
    states = await GarbageCollector(stage(owner))._states(dependent)
    assert states == {"s": Owner.SOLID}


async def test_pods_of_a_node_that_only_the_api_server_has_stay() -> None:
    runs = pod(uid="u", node="n1")
    context = stage(node(), runs)
    context.informers.of(kinds.POD)._put(runs)
    controller = PodGarbageCollector(context, period_seconds=1.0, quarantine_seconds=0.0, ended_pods_max=0)
    await controller._collect()
    assert await context.client.get(kinds.POD, "p", "default") is not None


async def test_a_claim_that_only_the_api_server_has_keeps_its_volume() -> None:
    claim = core.PersistentVolumeClaim()
    claim.metadata.name, claim.metadata.namespace, claim.metadata.uid = "data", "default", "c"
    reference = core.ObjectReference(name="data", namespace="default", uid="c")
    assert await VolumeController(stage(claim))._claim(reference) is not None


async def test_a_consumer_that_only_the_api_server_has_is_live() -> None:
    claim = devices.ResourceClaim()
    claim.metadata.name, claim.metadata.namespace = "gpu", "default"
    consumer = claim.status.reservedFor.add(resource="pods", name="p", uid="u")
    assert await ResourceClaimController(stage(pod(uid="u", node="n1")))._is_live(claim, consumer)


def test_a_replica_set_without_pods_may_be_the_deployments_own() -> None:
    deployment = apps.Deployment()
    deployment.metadata.name, deployment.metadata.uid = "web", "d"
    made = apps.ReplicaSet()
    made.metadata.ownerReferences.append(owner_reference(deployment))
    assert is_own(deployment, made)


def test_a_quota_that_is_newer_than_an_object_is_counted_though_an_older_one_is_not() -> None:
    controller = QuotaController(stage())
    for name, created in (("older", 1), ("newer", 9)):
        quota = core.ResourceQuota()
        quota.metadata.name, quota.metadata.namespace = name, "default"
        quota.metadata.creationTimestamp.seconds = created
        controller.quotas._put(quota)
    while (key := controller.queue.get_nowait()) is not None:
        controller.queue.done(key)
    seen = core.Pod()
    seen.metadata.namespace, seen.metadata.name = "default", "p"
    seen.metadata.creationTimestamp.seconds = 5
    controller._added(seen)
    assert set(controller.queue._later_at) == {ObjectKey("default", "newer")}


async def test_a_toleration_begins_again_with_the_next_taint() -> None:
    clock = FakeClock()
    context = context_of(FakeApi(), clock)
    tolerates = {**SILENT, "operator": "Exists", "tolerationSeconds": 10}
    stays = pod(uid="u", node="n1", tolerations=[tolerates])
    pods, nodes = context.informers.of(kinds.POD), context.informers.of(kinds.NODE)
    pods._put(stays)
    controller, key = TaintEviction(context, pods), key_of(stays)
    nodes._put(node(taints=[SILENT]))
    assert await controller.reconcile(key) == pytest.approx(10.0)
    nodes._put(node())
    assert await controller.reconcile(key) is None
    await clock.advance(8.0)
    nodes._put(node(taints=[SILENT]))
    assert await controller.reconcile(key) == pytest.approx(10.0)


def test_a_budget_is_counted_again_when_a_label_leaves_it() -> None:
    controller = Disruption(stage())
    budget = policy.PodDisruptionBudget()
    budget.metadata.name, budget.metadata.namespace = "b", "default"
    budget.spec.selector.matchLabels["app"] = "web"
    controller.budgets._put(budget)
    key = controller.queue.get_nowait()
    assert key is not None
    controller.queue.done(key)
    before = pod(uid="u", labels={"app": "web"})
    after = copy_of(before)
    after.metadata.labels["app"] = "other"
    controller._pod_updated(before, after)
    assert controller.queue.get_nowait() == key


def test_a_pod_whose_eviction_was_allowed_does_not_count_as_healthy() -> None:
    budget = policy.PodDisruptionBudget()
    budget.spec.minAvailable.intVal = 1
    budget.status.disruptedPods["a"].seconds = 1_000
    pods = [pod(name, uid=f"uid-{name}", ready=True) for name in ("a", "b")]
    assert status_of(budget, pods, {}, to_time(1_001.0)).disruptionsAllowed == 0
