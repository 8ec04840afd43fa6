"""The fourth set of mutations that are kept apart: what they break where no other test shows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
from google.protobuf.message import Message

from nominee.apiserver.admission import resource_quota
from nominee.apiserver.kinds.core.pods.resize import PodResizeStrategy
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.kinds.table import strategy_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.pods.eviction import EvictionRequest
from nominee.apiserver.registry.store import Store
from nominee.apiserver.storage.interface import RangeResult
from nominee.autoscaler.options import Compat, Options
from nominee.autoscaler.planning.node_groups.cluster_state import ClusterStateRegistry
from nominee.autoscaler.planning.objects.events import Events
from nominee.autoscaler.planning.objects.observation import CREATING, CloudView, Instance, NodeGroup
from nominee.controllers.disruption.shell.disruption import Disruption
from nominee.controllers.replica_sets.replicas import recheck_seconds
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey, copy_of
from nominee.machinery.api.pb import core, devices, policy
from nominee.machinery.features import gates as versions
from nominee.machinery.features.gates import Gates
from nominee.machinery.resources import quota
from nominee.machinery.runtime.clock import FakeClock, Moment, to_time
from nominee.machinery.scheduling.priority import SYSTEM_CRITICAL
from nominee.machinery.wire import codec
from nominee.scheduler.event_handlers import EventHandlers
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import Features, Node, SliceView
from nominee.scheduler.plugins.dynamic_resources.device_allocation.pools import SliceIndex, gather_pools
from nominee.scheduler.plugins.dynamic_resources.tracker import ClaimTracker
from tests.autoscaler.builders import autoscaler, new_world
from tests.autoscaler.builders import node as grouped_node
from tests.autoscaler.builders import pod as drained_pod
from tests.controllers.builders import EPOCH, budget, owned_by, replica_set, stamp
from tests.controllers.builders import pod as stored_pod
from tests.controllers.contexts import context_of
from tests.controllers.jobs.builders import job, sync_of, tracked
from tests.kubelet.executor import Executor, container, new_pod, node_object
from tests.mutations.proofs.memory_storage import LaggingCache, MemoryStorage
from tests.scheduler.builders import pod
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

ENVIRONMENT = Environment(Gates("apiserver", versions.DEFAULT), to_time(1_700_000_000.0))

# --- scheduler ---


def test_the_end_of_a_nomination_wakes_pods_of_the_same_priority() -> None:
    waiting = [pod("higher", priority=101), pod("equal", priority=100), pod("lower", priority=99)]
    woken = list[str]()

    class Queue:
        def delete(self, pod: core.Pod) -> None:
            pass

        def move_all(self, event: object, old: object, new: object, now: float, only: Any = None) -> None:
            woken.extend(info.name for info in waiting if only(info))

    handlers = EventHandlers(cast("Any", Queue()), Cache(), is_ours=lambda name: True)
    handlers.pod_deleted(pod("preemptor", priority=100, nominated="n1").pod, stale=False, now=0.0)
    assert woken == ["equal", "lower"]


def test_devices_stay_taken_while_one_of_the_gang_is_to_write_them() -> None:
    tracker = ClaimTracker(cast("Any", SimpleNamespace(get=lambda *name: None, list=lambda *namespace: [])))
    allocation = devices.AllocationResult()
    allocation.devices.results.add(request="r", driver="d", pool="n1", device="gpu-0")
    tracker.take_off("claim", allocation)
    first, second = pod("first").pod, pod("second").pod
    for each in (first, second):
        assert tracker.join("claim", each)
    assert not tracker.give_up("claim", first.metadata.uid)
    assert tracker.holds("claim", second.metadata.uid)
    assert [str(device) for device in tracker.allocated().devices] == ["d/n1/gpu-0"]
    assert tracker.give_up("claim", second.metadata.uid)
    assert not tracker.allocated().devices


def device_slice(name: str, generation: int) -> SliceView:
    """Return the only slice of a generation of node n1's pool, with one device of the generation."""
    made = devices.ResourceSlice(metadata={"name": name})
    made.spec.driver, made.spec.nodeName = "d", "n1"
    made.spec.pool.name, made.spec.pool.generation, made.spec.pool.resourceSliceCount = "n1", generation, 1
    made.spec.devices.add(name=f"gpu-{generation}")
    return SliceView(made)


def test_the_newest_generation_of_a_pool_counts_whatever_its_name() -> None:
    for names in (("a", "b"), ("b", "a")):
        index = SliceIndex(device_slice(name, number) for number, name in enumerate(names, 1))
        pools = gather_pools(index, Node("n1"), Features())
        assert [device.id.device for pool in pools for device in pool.devices()] == ["gpu-2"]


# --- kubelet ---


def critical(name: str) -> core.Pod:
    return new_pod(name, container("main", cpu="3"), priority=SYSTEM_CRITICAL)


def test_a_critical_pod_does_not_preempt_an_equal_one() -> None:
    on = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    on.store(critical("first"))
    on.list_pods()
    on.work()
    on.store(critical("second"))
    on.observe("second")
    on.work()
    assert [on.api[name].status.phase for name in ("first", "second")] == ["Running", "Failed"]


# --- autoscaler ---


async def test_a_simulated_removal_counts_in_the_budgets() -> None:
    world = new_world(FakeClock(), target=3)
    for name in ("n1", "n2", "n3"):
        grouped_node(world, name)
    drained_pod(world, "busy", "1200m", on="n3")
    for name, on in (("p1", "n1"), ("p2", "n2")):
        drained_pod(world, name, "100m", on=on).metadata.labels["app"] = "web"
    made = policy.PodDisruptionBudget(metadata={"name": "b", "namespace": "default"})
    made.spec.selector.matchLabels["app"] = "web"
    made.status.disruptionsAllowed = 1
    world.budgets["default", "b"] = made
    it = autoscaler(world, Compat.V1_36)
    await it.run_once()
    assert it.state.planner.unneeded_names() == ["n1"]
    assert str(it.state.planner.unremovable.reasons["n2"]) == "BlockedByPod(p2/NotEnoughPdb)"


def test_an_instance_fails_once() -> None:
    def view(*instances: Instance) -> CloudView:
        group = NodeGroup(id="g", min=0, max=10, target=3, instances=instances)
        return CloudView(groups={"g": group}, group_of_node={each.id: "g" for each in instances})

    registry = ClusterStateRegistry(Options())
    created = [Instance(id=f"g-{number}", state=CREATING) for number in range(3)]
    failed = Instance(id="g-0", state=CREATING, error_code="QUOTA")
    registry.update_nodes((), view(), Moment(1000.0, 0.0), Events())
    registry.register_scale_up("g", 3, 0.0)
    registry.update_nodes((), view(*created), Moment(1005.0, 5.0), Events())
    for loop in range(2, 6):
        at = Moment(1000.0 + 5 * loop, 5.0 * loop)
        registry.update_nodes((), view(failed, *created[1:]), at, Events())
        assert registry.scale_ups.requests["g"].increase == 2
    assert registry.scale_ups.failures == [("QUOTA", 1)]


# --- controllers ---


def test_each_ready_pod_becomes_available_by_time() -> None:
    of = replica_set(min_ready_seconds=30)
    pods = [stored_pod(f"p{since}", ready=True, ready_since=since, phase="Running") for since in (0, 90)]
    assert recheck_seconds(of, pods, EPOCH + 100, EPOCH + 100) == 20
    assert recheck_seconds(of, pods, EPOCH + 150, EPOCH + 150) is None


def test_a_pod_that_the_status_has_is_not_entered_again() -> None:
    ended = tracked(stored_pod("p0", uid="u0", phase="Succeeded", node="n1"))
    counted = {"startTime": stamp(0), "active": 1, "uncountedTerminatedPods": {"succeeded": ["u0"]}}
    running = tracked(stored_pod("p1", uid="u1", phase="Running", node="n1"))
    sync = sync_of(job(completions=2, parallelism=2, status=counted), ended, running)
    sync.work()
    sync.note_work(0, [])
    assert [each.metadata.uid for each in sync.count()] == ["u0"]
    assert list(sync.job.status.uncountedTerminatedPods.succeeded) == ["u0"]


async def test_a_budget_is_looked_at_again_after_an_eviction() -> None:
    api, clock = FakeApi(), FakeClock()
    evicted = {"p0": stamp(int(clock.now()) - EPOCH)}
    api.put(budget(minAvailable=1, status={"disruptedPods": evicted}))
    for number in range(2):
        api.put(
            stored_pod(
                f"p{number}", labels={"app": "web"}, owners=[owned_by("set")], phase="Running", ready=True
            )
        )
    context = context_of(api, clock)
    controller = Disruption(context)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(context.informers.run)
            await context.informers.wait_synced()
            again = await controller.reconcile(ObjectKey("default", "budget"))
            tasks.cancel_scope.cancel()
    [written] = api.all_of(kinds.POD_DISRUPTION_BUDGET)
    assert (written.status.currentHealthy, written.status.disruptionsAllowed) == (1, 0)
    assert again is not None
    assert 0 < again <= 130


# --- apiserver ---


class Overtaken(MemoryStorage):
    """A storage in which another writer changes the budget each time before the first writes of it."""

    def __init__(self, changed: Message) -> None:
        super().__init__()
        self.changed: Message | None = changed

    async def range(
        self, prefix: str, *, revision: int = 0, limit: int = 0, start_after: str = ""
    ) -> RangeResult:
        found = await super().range(prefix, revision=revision, limit=limit, start_after=start_after)
        if self.changed is not None:
            self.put(self.changed)
            self.changed = None
        return found


async def test_an_eviction_reads_a_changed_budget_again() -> None:
    clock, evicted = FakeClock(), stored_pod("p", uid="u", labels={"app": "web"}, phase="Running", ready=True)
    status = {"observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1}
    storage = Overtaken(budget(minAvailable=1, status={**status, "disruptionsAllowed": 1}))
    storage.put(budget(minAvailable=1, status=status))
    request = EvictionRequest(
        store_of(storage), strategy_of(kinds.POD), cast("Any", None), clock, ENVIRONMENT, "default", "p"
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.advance, 30)
        assert await request._ask_budget(evicted, dry_run=False) is None
    stored = await request.store.read(kinds.POD_DISRUPTION_BUDGET, "default", "budget")
    assert stored.message.status.disruptionsAllowed == 0
    assert list(stored.message.status.disruptedPods) == ["p"]


def store_of(storage: MemoryStorage, *cached: CachedObject) -> Store:
    objects = SimpleNamespace(
        of=lambda kind, namespace, name, revision, data: CachedObject(
            kind, namespace, name, revision, stored=data
        )
    )
    return Store(cast("Any", storage), cast("Any", objects), LaggingCache(*cached) if cached else None)


def test_a_pod_that_moves_into_a_quota_is_charged() -> None:
    old = PodInfo(pod("p").pod).pod
    new = copy_of(old)
    new.spec.activeDeadlineSeconds = 60
    limited = core.ResourceQuota()
    limited.spec.scopes.append("Terminating")
    limited.spec.hard["pods"].string = limited.status.hard["pods"].string = "1"
    limited.status.used["pods"].string = "1"
    request = SimpleNamespace(kind=kinds.POD, operation="UPDATE", subresource="", obj=new, old=old)
    [(_, used)] = resource_quota._charges(cast("Any", request), [limited], 0)
    assert str(used["pods"]) == "1"


def test_a_resize_is_a_new_generation() -> None:
    old = new_pod("p")
    new = copy_of(old)
    new.spec.containers[0].resources.requests["cpu"].string = "2"
    strategy = PodResizeStrategy(kinds.POD)
    strategy.prepare_for_update(new, old, ENVIRONMENT)
    assert (old.metadata.generation, new.metadata.generation) == (1, 2)


# --- machinery ---


def test_a_claim_for_all_devices_uses_the_quota() -> None:
    exactly = {"deviceClassName": "gpu", "allocationMode": "All"}
    asked = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    metadata = {"name": "c", "namespace": "default"}
    claim = codec.from_json(devices.ResourceClaim, {"metadata": metadata, "spec": asked})
    used = quota.usage(kinds.RESOURCE_CLAIM, claim, 0)
    assert str(used["gpu.deviceclass.resource.k8s.io/devices"]) == "32"
