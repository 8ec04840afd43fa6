"""The mutations that are kept apart: what they break where no other test shows it."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from google.protobuf.message import Message

from nominee.apiserver.cache.continue_token import ContinueToken
from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.apiserver.kinds.table import fields_of, strategy_of
from nominee.apiserver.objects.requests import ListOptions
from nominee.apiserver.registry.pods import budget
from nominee.apiserver.registry.store import Preconditions, Store
from nominee.apiserver.storage.interface import RevisionMismatch
from nominee.autoscaler.planning.scale_down.unremovable import Reason, Unremovable, UnremovableNodes
from nominee.controllers.cron_jobs.sync import new_job
from nominee.controllers.daemon_sets.shell.daemon_sets import DaemonSetController
from nominee.controllers.garbage.shell.collector import GarbageCollector
from nominee.kubelet.shell import cloud
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of, key_of
from nominee.machinery.api.pb import coordination, core, policy
from nominee.machinery.client.api_client import Client
from nominee.machinery.client.leader_election import LeaderElector
from nominee.machinery.runtime.clock import FakeClock, SystemClock, parse_rfc3339
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import NominatingInfo, NominatingMode
from nominee.scheduler.plugins.dynamic_resources.hints import Hints
from nominee.scheduler.plugins.dynamic_resources.tracker import manager_of
from nominee.scheduler.queue.hints import Registration
from nominee.scheduler.shell.loop.binding import BindingCycles
from tests.controllers.builders import node as stored_node
from tests.controllers.builders import owned_by, replica_set
from tests.controllers.builders import pod as stored_pod
from tests.controllers.contexts import context_of
from tests.controllers.cron_jobs.test_shell import _controller
from tests.controllers.cron_jobs.test_sync import cron_job
from tests.controllers.daemon_sets.builders import daemon_set
from tests.controllers.jobs.builders import job
from tests.controllers.jobs.test_shell import LaggingApi, _end, _job, _running
from tests.kubelet.executor import Executor, container, deleted, new_pod, node_object, resized
from tests.mutations.proofs.memory_storage import MemoryStorage
from tests.scheduler.builders import desk, node, pod
from tests.scheduler.plugins.claim_stage import S1, Stage, allocated, mine, user
from tests.scheduler.preemption.test_column_dry_run import decided, rejected
from tests.scheduler.queue.replay import World
from tests.support.devices import claim
from tests.support.fake_api import FakeApi
from tests.support.leases import LeaseServer

# --- scheduler ---


def queue_of_one(world: World, **spec: Any) -> core.Pod:
    """Add a pod to the queue."""
    made = pod("a", **spec).pod
    world.pods[key_of(made)] = made
    world.handlers.pod_added(made, world.now)
    return made


def test_a_nomination_is_followed_while_the_pod_is_in_back_off() -> None:
    world = World([])
    before = queue_of_one(world)
    world.do({"op": "pop", "t": 0.2})
    world.do({"op": "error", "pod": "a", "t": 0.3})
    assert [info.pod_info.name for info in world.queue.error_backing_off()] == ["a"]
    after = copy_of(before)
    after.metadata.resourceVersion, after.status.nominatedNodeName = "2", "n1"
    world.pods[key_of(after)] = after
    world.handlers.pod_updated(before, after, 0.4)
    assert world.nominator.node_of("uid-a") == "n1"


def test_each_change_of_an_update_may_requeue_the_pod() -> None:
    ungated = ClusterEvent(EventResource.Pod, ActionType.UpdatePodSchedulingGatesEliminated)
    world = World([Registration("SchedulingGates", ungated)])
    before = queue_of_one(world, schedulingGates=[{"name": "x"}])
    after = copy_of(before)
    del after.spec.schedulingGates[:]
    after.metadata.labels["admitted"] = "true"
    after.metadata.resourceVersion = "2"
    world.pods[key_of(after)] = after
    world.handlers.pod_updated(before, after, 1.0)
    assert [info.pod_info.name for info in world.queue.active()] == ["a"]


def test_room_that_is_kept_for_an_equal_pod_is_not_won_by_preemption() -> None:
    on = desk(without=())
    on.add_nodes(node("n1", cpu="2"))
    on.cache.add_pod(pod("victim", cpu="2", on="n1"))
    rival, who = pod("rival", cpu="2", priority=10), pod("who", cpu="2", priority=10)
    on.nominator.add(rival, NominatingInfo(NominatingMode.Override, "n1"))
    state = CycleState()
    statuses = rejected(on, who, state)
    assert statuses is not None
    assert decided(on, state, who, statuses).candidate is None


def test_the_room_of_a_failed_binding_is_that_of_its_node() -> None:
    announced = list[core.Pod]()
    queue = SimpleNamespace(move_all=lambda event, old, *_: announced.append(old))
    cycles = SimpleNamespace(_deps=SimpleNamespace(queue=queue))
    attempt = SimpleNamespace(pod=pod("p"), node_name="n1")
    BindingCycles._announce_room(cast("BindingCycles", cycles), cast("Any", attempt), 0.0)
    assert [freed.spec.nodeName for freed in announced] == ["n1"]


def test_devices_that_are_freed_matter_to_pods_with_other_claims() -> None:
    stage = Stage(mine(), claim("other", uid="uid-other"), S1)
    hints = Hints(manager_of(stage.framework).claims)
    hint = hints.after_claim_change(user("q", "other"), allocated("n1", "p"), mine())
    assert hint is QueueingHint.Queue


# --- kubelet ---


def show(here: Executor, *pods: core.Pod) -> None:
    """Let the kubelet see pods, and work."""
    for each in pods:
        here.store(each)
    here.observe(*(each.metadata.name for each in pods))
    here.work()


def test_room_that_an_actuated_decrease_frees_is_given_to_a_deferred_resize() -> None:
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    here.list_pods()
    show(here, new_pod("a", container("main", cpu="3")), new_pod("b", container("main", cpu="1")))
    show(here, resized(here.api["b"], "main", cpu="2"))
    record = here.node.pods["uid-b"]
    assert record.pending is not None
    show(here, resized(here.api["a"], "main", cpu="1"))
    assert record.pending is None
    assert not here.node.differs(record)


def test_a_new_process_removes_a_deleted_pod_that_has_ended() -> None:
    here = Executor(node_object(cpu="4", memory="8Gi", pods="10"))
    ended = deleted(new_pod("a"))
    ended.status.phase = "Failed"
    here.store(ended)
    here.list_pods()
    here.work()
    assert "a" not in here.api


async def test_an_instance_whose_node_could_not_be_run_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = protocol.InstanceStatus(instanceState=protocol.InstanceStatus.instanceRunning)
    answers: dict[str, Message] = {
        "NodeGroups": protocol.NodeGroupsResponse(nodeGroups=[protocol.NodeGroup(id="g")]),
        "NodeGroupNodes": protocol.NodeGroupNodesResponse(
            instances=[protocol.Instance(id="g-1", status=running)]
        ),
        "NodeGroupTemplateNodeInfo": protocol.NodeGroupTemplateNodeInfoResponse(),
    }

    async def ask(method: str, _: Message) -> Message:
        return answers[method]

    monkeypatch.setattr(cloud, "_ask", ask)
    tried = list[str]()

    async def appeared(instance: cloud.CloudInstance) -> None:
        tried.append(instance.id)
        if len(tried) == 1:
            raise errors.service_unavailable("away")

    async def disappeared(_: str) -> None:
        raise AssertionError

    watcher = cloud.CloudWatcher(lambda: None, FakeClock(), appeared, disappeared)
    stub = cast("Any", SimpleNamespace(**{name: name for name in answers}))
    for _ in range(3):
        await watcher.poll(stub)
    assert tried == ["g-1", "g-1"]


# --- API server ---


def plain_pod(name: str = "p", uid: str = "u") -> core.Pod:
    made = core.Pod()
    made.metadata.name, made.metadata.namespace, made.metadata.uid = name, "default", uid
    return made


async def test_a_list_is_not_continued_from_a_cache_that_is_behind() -> None:
    storage = MemoryStorage()
    storage.put(plain_pod("a"))
    cache = WatchCache(storage, cast("Any", None), SystemClock())
    await cache._load()
    storage.put(plain_pod("b"))
    token = ContinueToken(storage.revision, "a\0").encode()
    options = ListOptions(limit=10, continue_token=token)
    page = await Reads(storage, cache, fields_of).list(kinds.POD, "default", options)
    assert "b" in [found.name for found in page.items]


def test_an_unready_pod_costs_no_disruption_at_the_desired_number() -> None:
    found = policy.PodDisruptionBudget()
    found.status.currentHealthy = found.status.desiredHealthy = 2
    assert budget.spares_unready(found)
    found.status.currentHealthy = 1
    assert not budget.spares_unready(found)


async def test_a_deletion_by_uid_does_not_hit_an_object_that_was_made_meanwhile() -> None:
    class Storage(MemoryStorage):
        """The object is removed and made again before the first deletion arrives."""

        arrived = False

        async def delete(self, key: str, *, expected_revision: int) -> int:
            if not self.arrived:
                self.arrived = True
                self.put(plain_pod(uid="second"))
                raise RevisionMismatch(key, expected_revision, self.values[key])
            return await super().delete(key, expected_revision=expected_revision)

    storage = Storage()
    storage.put(plain_pod(uid="first"))
    store = Store(storage, WatchCache(storage, cast("Any", None), SystemClock()).objects)
    with pytest.raises(StatusError) as caught:
        await store.delete(kinds.POD, "default", "p", preconditions=Preconditions(uid="first"))
    assert errors.is_conflict(caught.value)
    assert (await store.read(kinds.POD, "default", "p")).message.metadata.uid == "second"


def test_a_pod_keeps_its_grace_period_when_its_last_finalizer_goes() -> None:
    old = plain_pod()
    old.metadata.finalizers.append("example.com/own")
    old.metadata.deletionTimestamp.seconds, old.metadata.deletionGracePeriodSeconds = 1, 30
    new = copy_of(old)
    del new.metadata.finalizers[:]
    assert not strategy_of(kinds.POD).deleted_by_update(new, old)
    old.metadata.deletionGracePeriodSeconds = 0
    assert strategy_of(kinds.POD).deleted_by_update(new, old)


# --- controllers ---


async def test_a_pod_of_a_job_is_counted_once_while_the_watch_of_pods_lags() -> None:
    api = LaggingApi()
    api.lags = kinds.POD
    api.put(job(completions=3, parallelism=1))
    async with _running(api) as clock:
        api.hold["patch"] = anyio.Event()
        _end(api, api.all_of(kinds.POD)[0])
        await clock.advance(3)  # the status names the pod, whose finalizer is being removed
        api.gate = anyio.Event()
        api.hold.pop("patch").set()
        await clock.advance(10)
        assert _job(api).status.succeeded == 1


async def test_a_job_that_was_created_before_is_entered_into_the_status() -> None:
    due = parse_rfc3339("2026-01-01T01:00:00Z")
    of = cron_job()
    made = new_job(of, due)
    made.metadata.uid = "made"
    api = FakeApi.of(of, made)
    exists = errors.already_exists(kinds.JOB, made.metadata.name)
    api.reject = lambda request: exists if request.verb == "create" else None
    async with _controller(api, FakeClock(due - 1)) as controller:
        await cast("FakeClock", controller.clock).advance(3)
    (stored,) = api.all_of(kinds.CRON_JOB)
    assert [each.uid for each in stored.status.active] == ["made"]


def test_a_daemon_set_that_was_created_again_has_its_own_rules() -> None:
    controller = DaemonSetController(context_of(FakeApi(), FakeClock()))
    controller.nodes._put(stored_node())
    first = daemon_set(nodeSelector={"disk": "ssd"})
    assert not controller._spec(first).verdicts["n1"].runs
    second = daemon_set()
    second.metadata.uid = "second"
    assert controller._spec(second).verdicts["n1"].runs


def test_an_owner_that_waits_is_queued_when_its_dependent_lets_it_go() -> None:
    context = context_of(FakeApi(), FakeClock())
    collector = GarbageCollector(context)
    owner = replica_set(uid="s")
    owner.metadata.deletionTimestamp.seconds = 1
    owner.metadata.finalizers.append("foregroundDeletion")
    context.informers.of(kinds.REPLICA_SET)._put(owner)
    pods = context.informers.of(kinds.POD)
    pods._put(stored_pod(uid="u", owners=[owned_by("s")]))
    while (key := collector.queue.get_nowait()) is not None:
        collector.queue.done(key)
    pods._put(stored_pod(uid="u"))
    key = collector.queue.get_nowait()
    assert key is not None
    assert (key.kind, key.name) == (kinds.REPLICA_SET, owner.metadata.name)


# --- autoscaler ---


def test_a_node_is_simulated_again_when_its_time_is_over() -> None:
    nodes = UnremovableNodes()
    nodes.add_timeout("n1", Unremovable(Reason.BLOCKED_BY_POD), until=10.0)
    nodes.update({"n1"}, 5.0)
    assert nodes.is_recent("n1")
    nodes.update({"n1"}, 11.0)
    assert not nodes.is_recent("n1")


# --- machinery ---


async def test_a_leader_renews_after_a_renewal_whose_answer_was_lost() -> None:
    class Losing(LeaseServer):
        """Loses the answer to the first renewal."""

        lost = False

        async def update(self, lease: coordination.Lease) -> coordination.Lease:
            stored = await super().update(lease)
            if not self.lost:
                self.lost = True
                raise errors.service_unavailable("the answer was lost")
            return stored

    elector = LeaderElector(Losing().client, name="s", identity="a", clock=FakeClock(), rng=random.Random(1))
    assert await elector._try_acquire()
    elector.leading = True
    assert [await elector._try_acquire() for _ in range(2)] == [False, True]


async def test_a_client_turns_to_the_next_server(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for index in range(2):
        name = f"apiserver-{index}"
        document = {
            "name": name,
            "component": "apiserver",
            "pid": os.getpid(),
            "grpc": f"127.0.0.1:{index + 1}",
        }
        (run / f"{name}.json").write_text(json.dumps(document))
    async with Client("127.0.0.1:1", directory=tmp_path) as client:
        client._follow(client._connection)
        assert client.address == "127.0.0.1:2"
        client._follow(client._connection)
        assert client.address == "127.0.0.1:1"
